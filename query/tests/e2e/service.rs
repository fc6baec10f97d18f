//! `cardhour serve` as a browser, a program and Prometheus meet it.

use crate::site::{MAP, Site};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running service.
pub struct Service {
    child: Child,
    port: u16,
    token: String,
}

/// What came back.
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Service {
    pub fn start(site: &Site) -> Self {
        Self::start_with(site, "http", &[])
    }

    /// The same with more options; `scheme` is what it has to say that it speaks.
    pub fn start_with(site: &Site, scheme: &str, options: &[&str]) -> Self {
        Self::of(site, scheme, site.command().args(["serve", "--address", "127.0.0.1:0"]).args(options))
    }

    /// What `command` serves of the site's ledger.
    pub fn of(site: &Site, scheme: &str, command: &mut Command) -> Self {
        let before = format!("{scheme}://127.0.0.1:");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // Read on to its end on a thread of its own, so that the service never waits for a reader of its log.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said =
            lines.by_ref().map_while(Result::ok).find(|line| line.contains(&before)).expect("it says where it is");
        std::thread::spawn(move || lines.for_each(drop));
        let address = said.split(&before).nth(1).unwrap();
        let port = address.split('/').next().unwrap().parse().unwrap();
        let token = std::fs::read_to_string(site.ledger().join("token")).unwrap().trim().to_owned();
        assert!(!said.contains(&token), "the token never goes into a log");
        Self { child, port, token }
    }

    /// Whether it ends well when it is told to, within half a minute.
    pub fn ended_well(mut self) -> bool {
        assert!(Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap().success());
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Sends it a signal, by its name: `USR1`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), pid]).status().unwrap().success());
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &format!("authorization: Bearer {}\r\n", self.token), "")
    }

    /// Sends a body, with the token.
    pub fn post(&self, path: &str, body: &str) -> Reply {
        self.ask("POST", path, &format!("authorization: Bearer {}\r\n", self.token), body)
    }

    fn sql(&self, query: &str) -> Reply {
        let headers =
            format!("authorization: Bearer {}\r\ncontent-type: application/json\r\naccept: text/csv\r\n", self.token);
        self.ask("POST", "/api/v1/sql", &headers, &serde_json::json!({ "query": query }).to_string())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// By hand: 2 × 3 h at 10.00 = 60.00 for `<vision>`, 1 × 1 h at 10.00 = 10.00 for `speech`.
const JOBS: &str = "id,who,team,cards,model,start,end\n\
    1,ann,<vision>,2,h200,2026-03-01T00:00:00Z,2026-03-01T03:00:00Z\n\
    2,ben,speech,1,h200,2026-03-02T00:00:00Z,2026-03-02T01:00:00Z\n";

const PRICES: &str =
    "currency = \"CNY\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nmodel = \"*\"\nper_card_hour = \"10.00\"\n";

fn imported() -> Site {
    let site = Site::new();
    let (jobs, map) = (site.file("jobs.csv", JOBS), site.file("map.toml", MAP));
    site.import(&format!("jobs {jobs} --map {map}"));
    let nodes = site.file("nodes.csv", "cluster,node,model,cards\nc,n1,h200,4\n");
    site.import(&format!("nodes {nodes}"));
    std::fs::write(site.ledger().join("prices.toml"), PRICES).unwrap();
    site
}

#[test]
fn a_program_with_the_token_gets_what_the_command_prints() {
    let site = imported();
    let service = Service::start(&site);
    let reply = service.get("/api/v1/report/bill?month=2026-03&by=project&format=csv");
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.body, site.ok("report bill --month 2026-03 --by project --format csv"));
    assert!(reply.body.contains("60.00,CNY"), "{}", reply.body);
    assert_eq!(service.get("/api/v1/report/money").status, 404);
    let wrong = service.get("/api/v1/report/bill?month=march");
    let body: serde_json::Value = serde_json::from_str(&wrong.body).unwrap();
    assert_eq!((wrong.status, body["code"].as_str()), (400, Some("bad-request")));
    assert!(wrong.head.contains(&format!("x-request-id: {}", body["request_id"].as_str().unwrap())));
}

#[test]
fn sql_over_http_answers_and_never_writes() {
    let site = imported();
    let service = Service::start(&site);
    let reply = service.sql("select count(*) as n from jobs");
    assert_eq!((reply.status, reply.body.as_str()), (200, "n\n2\n"));
    for query in ["drop table jobs", "copy (select 1) to '/tmp/cardhour-http.csv'", "nonsense"] {
        assert_eq!(service.sql(query).status, 400, "{query}");
    }
    assert_eq!(service.sql("select count(*) as n from jobs").body, "n\n2\n");
}

#[test]
fn nobody_without_the_token_learns_more_than_that_it_runs() {
    let site = imported();
    let service = Service::start(&site);
    assert_eq!(service.ask("GET", "/healthz", "", "").status, 200);
    for path in ["/", "/trace?line=all", "/metrics", "/openapi.json", "/api/v1/report/bill", "/api/v1/trace/all"] {
        let reply = service.ask("GET", path, "", "");
        assert_eq!(reply.status, 401, "{path}");
        assert!(!reply.body.contains("vision"), "{path}");
    }
    // And whoever tries is counted.
    let metrics = service.get("/metrics").body;
    let refused = "cardhour_http_requests_total{route=\"/api/v1/report/{name}\",status=\"401\"} 1";
    assert!(metrics.contains(refused), "{metrics}");
}

#[test]
fn the_page_shows_the_bill_and_leads_to_where_a_line_comes_from() {
    let site = imported();
    let service = Service::start(&site);
    let opened = service.ask("GET", &format!("/?token={}", service.token), "", "");
    assert_eq!(opened.status, 303);
    let cookie = opened.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());
    let page = service.ask("GET", "/", &cookie, "");
    assert_eq!(page.status, 200, "{}", page.body);
    for part in ["Bill of 2026-03", "60.00", "70.00", "&#60;vision&#62;", "Where the pool"] {
        assert!(page.body.contains(part), "{part} in\n{}", page.body);
    }
    assert!(!page.body.contains("<vision>") && !page.body.contains("Simulated:"));
    let link = page.body.split("href=\"/trace?line=").nth(1).unwrap().split('"').next().unwrap();
    let trace = service.ask("GET", &format!("/trace?line={link}"), &cookie, "");
    assert_eq!(trace.status, 200, "{}", trace.body);
    for part in ["10.00 CNY per card-hour", "60.00 CNY", "2026-03-01 00:00:00"] {
        assert!(trace.body.contains(part), "{part} in\n{}", trace.body);
    }
    assert_eq!(service.ask("GET", "/trace?line=project=nobody", &cookie, "").status, 404);
}

#[test]
fn prometheus_finds_the_pool_in_numbers() {
    let site = imported();
    let service = Service::start(&site);
    let metrics = service.get("/metrics");
    assert_eq!(metrics.status, 200);
    // 7 card-hours held.
    assert!(metrics.body.contains("cardhour_card_seconds{state=\"held\"} 25200.0"), "{}", metrics.body);
    assert!(metrics.body.contains("cardhour_last_month_cost{currency=\"CNY\"} 70.0"), "{}", metrics.body);
}

#[test]
fn an_address_beyond_this_machine_is_refused() {
    let site = imported();
    let answer = site.run("serve --address 0.0.0.0:7780");
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("needs TLS"), "{}", answer.err);
}

#[test]
fn it_stops_when_asked_to() {
    let site = imported();
    let mut service = Service::start(&site);
    let pid = service.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(service.child.wait().unwrap().code(), Some(0));
}
