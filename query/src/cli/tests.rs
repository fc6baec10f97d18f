use super::*;
use crate::checkpoint::CheckpointSpan;
use crate::render::Format;
use crate::request::{Asked, RequestError, Span};
use cardhour_books::report::{Dimension, ReportKind};
use clap::{CommandFactory, error::ErrorKind};

fn parse(words: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("cardhour").chain(words.split(' ')))
}

#[test]
fn every_command_has_help_with_an_example() {
    fn check(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{} says what it does", command.get_name());
        if command.has_subcommands() {
            command.get_subcommands().for_each(check);
            return;
        }
        let example = command.get_after_help().unwrap_or_default().to_string();
        assert!(example.contains("Example") && example.contains("cardhour "), "{} has an example", command.get_name());
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            assert!(option.get_help().is_some(), "{} {} says what it is", command.get_name(), option.get_id());
        }
    }
    let mut cli = Cli::command();
    cli.build();
    cli.get_subcommands().filter(|command| command.get_name() != "help").for_each(|command| {
        if !command.get_subcommands().any(|inner| inner.get_name() == "help") {
            check(command);
            return;
        }
        command.get_subcommands().filter(|inner| inner.get_name() != "help").for_each(check);
    });
    cli.debug_assert();
}

#[test]
fn the_examples_in_the_help_are_taken() {
    for words in [
        "init --zone Asia/Shanghai",
        "demo --no-serve",
        "serve",
        "import jobs - --format sacct",
        "import jobs march.csv.gz --map site.toml --as-of 2026-04-01 --covers 2026-03-01..2026-04-01",
        "import jobs a.parquet b.parquet --map site.toml --output json",
        "import nodes nodes.csv",
        "import reservations reservations.csv",
        "import outages outages.csv",
        "import costs march-costs.csv",
        "import output tokens.csv",
        "report output --month 2026-05",
        "report isolation --from 2026-03-01 --to 2026-03-08 --format csv",
        "isolation-test --victim ./serve --aggressor ./burn --card GPU-3f2a --share 1/2 --trials memory,crash",
        "deliver",
        "deliver --due",
        "deliver --due --dry-run",
        "report bill --month 2026-03 --by project,user",
        "report usage --by month,model --zone UTC --format csv",
        "report capacity --from 2026-03-01 --to 2026-03-08 --by day",
        "report bill --month 2026-03 --output-file march.html",
        "report weekly --week 2026-W20 --output-file week.html",
        "report monthly --month 2026-05 --format md",
        "me --user ann --month 2026-03",
        "sql -f waits.sql --format csv",
        "trace month=2026-03,org=lab,project=vision",
        "doctor --map site.toml --file sacct-march.txt.gz",
        "budgets --month 2026-03 --format csv",
        "budgets --notify",
        "budgets --advice --month 2026-03",
        "quote --cards 8 --model h200 --hours 72 --project vision",
        "quote --cards 1 --model h100 --hours 12 --from 2026-04-01T22:00",
        "replay placement --nodes nodes.csv --pods pods.csv",
        "replay placement --nodes nodes.csv --pods pods.csv --policy cardhour --seeds 20 --format csv",
        "replay placement --nodes nodes.csv --pods pods.csv --load all",
        "replay queue --jobs jobs.csv --pools pools.csv --order fifo",
        "replay queue --jobs jobs.csv --pools pools.csv --order sjf --from 2017-10-01 --to 2017-12-01 --format csv",
        "replay policy --month 2026-10",
        "replay policy --month 2026-10 --quotas new.toml --output-file october.html",
        "replay policy --from 2026-10-05 --to 2026-10-12 --quotas new.toml --by project --format csv",
        "verify",
        "verify --bill march.csv --format json",
        "maintain --dry-run",
        "maintain --retain-hours 720",
        "config",
        "completions bash",
        "report bill --ledger here --config there.toml",
    ] {
        parse(words).unwrap_or_else(|error| panic!("cardhour {words}\n{error}"));
    }
}

#[test]
fn what_cannot_be_asked_is_a_usage_error() {
    for words in [
        "report money",
        "report bill --month 2026-13",
        "report bill --month 2026-03 --from 2026-03-01",
        "report bill --by colour",
        "report weekly --week 2026-20",
        "report weekly --week 2026-W20 --month 2026-05",
        "report bill --format xml",
        "report bill --zone Mars",
        "import jobs",
        "import jobs a --format excel",
        "import jobs a --covers 2026-03-01",
        "import jobs a --as-of yesterday",
        "sql",
        "close 2026-03",
        "budgets --month 2026-03 --as-of 2026-03-02",
        "budgets --notify --month 2026-03",
        "quote --hours 3",
        "quote --cards 0 --hours 3",
        "replay placement --nodes nodes.csv",
        "replay placement --nodes nodes.csv --pods pods.csv --policy luck",
        "replay placement --nodes nodes.csv --pods pods.csv --seeds 0",
        "replay placement --nodes nodes.csv --pods pods.csv --load 95,131",
        "replay queue --jobs jobs.csv --pools pools.csv",
        "replay queue --jobs jobs.csv --pools pools.csv --order fifo --cards-per-host 0",
        "isolation-test --victim a",
        "isolation-test --victim a --aggressor b --share 2",
        "isolation-test --victim a --aggressor b --trials noise",
        "replay policy --month 2026-10 --from 2026-10-05",
        "replay policy --by user",
        "serve --address here",
        "doctor --map site.toml",
    ] {
        let error = parse(words).expect_err(words);
        assert_eq!(error.exit_code(), 2, "{words}");
        assert_ne!(error.kind(), ErrorKind::DisplayHelp, "{words}");
    }
}

#[test]
fn a_report_is_asked_as_it_is_typed() {
    let Command::Report(args) = parse("report usage --by label.team,day --month 2026-03").unwrap().command else {
        panic!("a report");
    };
    let Asked::Books(request) = args.request().unwrap() else { panic!("a table") };
    assert_eq!(request.report, ReportKind::Usage);
    assert_eq!(request.by, [Dimension::Label("team".into()), Dimension::Day]);
    assert_eq!(request.span, Span::Month(Month::parse("2026-03").unwrap()));
}

#[test]
fn a_checkpoint_is_asked_by_week_or_month() {
    let of = |words: &str| {
        let Command::Report(args) = parse(words).unwrap().command else { panic!("a report") };
        match args.request() {
            Ok(Asked::Checkpoint(request)) => Ok(request.of),
            Ok(Asked::Books(_) | Asked::Output(_) | Asked::Advised(_) | Asked::Isolation(_)) => panic!("a checkpoint"),
            Err(error) => Err(error),
        }
    };
    assert_eq!(of("report weekly --week 2026-W20"), Ok(CheckpointSpan::Week(Some("2026-W20".parse().unwrap()))));
    assert_eq!(of("report monthly"), Ok(CheckpointSpan::Month(None)));
    assert!(of("report weekly --month 2026-05").is_err() && of("report monthly --by queue").is_err());
}

#[test]
fn the_name_of_the_file_says_the_format_unless_one_is_named() {
    let output = |format, file: &str| Output { format, output_file: Some(file.into()) }.format();
    assert_eq!(output(None, "march.html"), Ok(Format::Html));
    assert_eq!(output(None, "march.PARQUET"), Ok(Format::Parquet));
    assert_eq!(output(Some(Format::Json), "march.csv"), Ok(Format::Json));
    assert_eq!(output(Some(Format::Csv), "march.xlsx"), Ok(Format::Csv));
    assert_eq!(output(None, "march"), Ok(Format::Table));
    assert_eq!(output(None, "march.xlsx"), Err(RequestError::FileFormat("march.xlsx".into())));
    assert_eq!(Output::default().format(), Ok(Format::Table));
}

#[test]
fn a_variable_fills_what_is_not_typed_and_an_empty_one_is_not_set() {
    let global = |typed: &str, ledger: &str, config: &str| {
        let (ledger, config) = (ledger.to_owned(), config.to_owned());
        let variable = |name: &str| match name {
            "CARDHOUR_LEDGER" => Some(ledger.clone().into()),
            "CARDHOUR_CONFIG" => Some(config.clone().into()),
            _ => None,
        };
        let global = parse(format!("{typed} doctor").trim()).unwrap().global.or_environment(variable);
        (global.ledger, global.config)
    };
    assert_eq!(global("", "a", "b"), (Some("a".into()), Some("b".into())));
    assert_eq!(global("--ledger c --config d", "a", "b"), (Some("c".into()), Some("d".into())));
    assert_eq!(global("", "", ""), (None, None));
}
