use super::*;

fn event(news: News, value: &str) -> Event {
    Event {
        name: "CardhourBudget",
        labels: BTreeMap::from([("b".to_owned(), value.to_owned()), ("a".to_owned(), "x=y".to_owned())]),
        news,
        severity: Severity::Info,
        at: Timestamp::from_unix_s(0),
        ends_at: None,
        summary: String::new(),
        description: None,
        user: None,
    }
}

#[test]
fn labels_come_back_from_the_table_as_they_went_in() {
    let event = event(News::Reached, "卡时");
    assert_eq!(&*event.label_text(), "a=x=y\nb=卡时");
    assert_eq!(labels_of(&event.label_text()), event.labels);
    assert_eq!(&*self::event(News::Reached, "two\nlines").label_text(), "a=x=y\nb=two lines");
}

#[test]
fn an_event_that_comes_again_has_the_id_it_had() {
    let later = Event { at: Timestamp::from_unix_s(9), summary: "other words".to_owned(), ..event(News::Reached, "v") };
    assert_eq!(later.id(), event(News::Reached, "v").id());
    assert_ne!(later.id(), event(News::Over, "v").id());
    assert_ne!(later.id(), event(News::Reached, "w").id());
}
