use super::super::table::{SERIES_FIELDS, read};
use super::super::{MetricsError, Setting, Telemetry};
use super::*;
use crate::import::map::MapFile;
use cardhour_domain::{EnergyBasis, Millijoules, Milliwatts, SampleSource, UseBasis};

fn told(text: &str, map: &str, setting: &Setting) -> Result<Telemetry, MetricsError> {
    let map = MapFile::parse(map, SERIES_FIELDS).unwrap();
    Ok(Telemetry::of([read(text.as_bytes(), &map, SampleSource::NvidiaSmi, setting)?], setting))
}

const MAP: &str = r#"
time_zone = "Asia/Shanghai"
cluster = "shanghai-1"

[columns]
at             = { column = "ts", unit = "ms" }
node           = "host"
card_uuid      = "gpu"
job_id         = "job"
user           = "who"
duty_cycle_pct = "util"
mem_used_mib   = { column = "mem_gib", scale = "1024" }
power_w        = { column = "kw", scale = "1000" }
energy_total_kwh = "meter"
"#;

#[test]
fn a_table_is_read_in_the_units_that_its_map_says() {
    let text = "ts,host,gpu,job,who,util,mem_gib,kw,meter\n\
                1772323260000,h1,GPU-1,77,ann,50,1.5,0.25,10.001\n\
                1772323320000,h1,GPU-1,77,ann,,1.5,0.25,10.005\n\
                soon,h1,GPU-1,77,ann,50,1.5,0.25,10.005\n";
    let told = told(text, MAP, &setting()).unwrap();
    let [_, second] = &told.samples[..] else { panic!("{:?}", told.samples) };
    assert_eq!(second.during.end(), at("2026-03-01T00:02:00Z"));
    assert_eq!((second.sm_active_pct, second.use_basis), (missing(Gap::CollectorDown), UseBasis::DutyCycle));
    // 1.5 GiB = 1,610,612,736 bytes; 0.25 kW; 0.004 kWh = 14,400 J.
    assert_eq!(
        (second.mem_used_bytes, second.power_mw),
        (Reading::Seen(1_610_612_736), Reading::Seen(Milliwatts(250_000)))
    );
    assert_eq!((second.energy_mj, second.energy_basis), (Reading::Seen(Millijoules(14_400_000)), EnergyBasis::Counter));
    assert_eq!(second.temperature_c, missing(Gap::NotRecorded));
    let [held] = &told.observations[..] else { panic!("{:?}", told.observations) };
    assert_eq!(
        (&*held.holder.cluster, &*held.holder.job_id, held.owner.user.as_deref()),
        ("shanghai-1", "77", Some("ann"))
    );
    assert_eq!(held.during.length_ms(), 120_000);
    assert_eq!((told.rejected[0].line, &*told.rejected[0].field), (4, "at"));
}

/// Of a meter that tells what was used since its row before: over a hole that is of the hole, too, and no card draws a kilowatt-hour in a minute.
#[test]
fn energy_since_the_row_before_is_booked_only_where_the_row_before_is_near() {
    let text = "at,node,card_uuid,energy_j\n\
                1772323260,h1,GPU-1,9000\n1772323320,h1,GPU-1,9000\n1772323380,h1,GPU-1,9000\n\
                1772330580,h1,GPU-1,1080000\n1772330640,h1,GPU-1,3600000\n1772330700,h1,GPU-1,9000\n";
    let told = told(text, "", &setting()).unwrap();
    let energy: Vec<_> = told.samples.iter().map(|sample| sample.energy_mj).collect();
    let of_minute = Reading::Seen(Millijoules(9_000_000));
    // The first and the one after two hours have no row before; 3.6 MJ in a minute are 60 kW.
    let not_known = missing(Gap::CollectorDown);
    assert_eq!(energy, [not_known, of_minute, of_minute, not_known, missing(Gap::Implausible), of_minute]);
}

#[test]
fn a_holder_stands_for_its_card_where_the_site_says_which() {
    let map = "[columns]\nat = \"t\"\njob_id = \"job\"\nsm_active_ratio = \"act\"\n";
    let text = "t,job,act\n2026-03-01T00:00:10Z,7,0.5\n2026-03-01T00:00:20Z,8,0.5\n";
    let mut known = setting();
    known.cards.insert("7".to_owned(), "GPU-1".into());
    let told = told(text, map, &known).unwrap();
    assert_eq!((told.samples.len(), told.samples[0].use_basis), (1, UseBasis::Gpm));
    assert_eq!((told.rejected[0].line, &*told.rejected[0].field), (3, "card_uuid"));
}

#[test]
fn a_table_that_says_too_little_is_refused() {
    let missing = |map: &str| match told("a,b\n1,2\n", map, &setting()) {
        Err(MetricsError::Missing { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(missing("[columns]\ncard_uuid = \"a\"\n"), "when a row was read");
    assert_eq!(missing("[columns]\nat = \"a\"\n"), "which card a row is of");
    let lacks = told("a,b\n1,2\n", "[columns]\nat = \"a\"\ncard_uuid = \"c\"\n", &setting());
    assert!(matches!(lacks, Err(MetricsError::Map(_))), "{lacks:?}");
}

/// The first block of a language in the page that users read.
fn block(language: &str) -> &'static str {
    let page = include_str!("../../../../../../docs/metrics-import.md");
    let (_, after) = page.split_once(&format!("```{language}\n")).unwrap();
    after.split_once("```").unwrap().0
}

#[test]
fn the_example_of_the_page_is_read_as_it_says() {
    let told = told(block("csv"), block("toml"), &Setting::of_cluster("else")).unwrap();
    assert_eq!(told.rejected, []);
    assert_eq!(stretches(&told.samples), [(0, 60), (60, 120)]);
    assert_eq!(
        (told.samples[1].sm_active_pct, told.samples[1].energy_mj),
        (pct(60), Reading::Seen(Millijoules(14_400_000)))
    );
    // The first row's counter has nothing before it: 250 W × 60 s.
    assert_eq!(told.samples[0].energy_mj, Reading::Seen(Millijoules(15_000_000)));
    assert_eq!(&*told.observations[0].holder.cluster, "shanghai-1");
}

#[test]
fn every_field_of_a_table_is_on_the_page() {
    let page = include_str!("../../../../../../docs/metrics-import.md");
    for (field, _) in SERIES_FIELDS {
        assert!(page.contains(&format!("`{field}`")), "{field}");
    }
}
