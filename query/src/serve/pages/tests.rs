use super::*;
use crate::serve::{overview, sample};
use cardhour_books::table::Table;

fn page(is_demo: bool) -> String {
    let page = overview::overview(&sample::reports(), Some("2026-03"), "org,project", "Asia/Shanghai");
    OverviewPage { page, is_demo, style: render::styles() }.render().unwrap()
}

#[test]
fn a_name_from_outside_is_text_and_never_a_tag() {
    let page = page(false);
    assert!(page.contains("&#60;speech&#62;") || page.contains("&lt;speech&gt;"), "the name is shown");
    assert!(!page.contains("<speech>"));
}

#[test]
fn a_demo_says_that_it_is_simulated_and_a_site_does_not() {
    assert!(page(true).contains("Simulated:"));
    assert!(!page(false).contains("Simulated:"));
}

#[test]
fn the_page_needs_no_script_and_no_other_file() {
    let page = page(true);
    for absent in ["<script", "src=", "<link", "@import", "url("] {
        assert!(!page.contains(absent), "{absent}");
    }
}

#[test]
fn empty_books_say_how_to_begin() {
    let nothing = overview::Reports {
        months: Table::default(),
        bill: Table::default(),
        capacity_by_month: Table::default(),
        capacity_by_day: Table::default(),
    };
    let page = overview::overview(&nothing, None, "org,project", "UTC");
    let page = OverviewPage { page, is_demo: false, style: render::styles() }.render().unwrap();
    assert!(page.contains("cardhour import jobs"));
}
