//! Mails to a real server, and people from a real directory: who gets what, with which headers, and what happens while one of both is away.

use crate::budgets::{instant, told, write_budgets};
use crate::directory::{BASE, PASSWORD, READER, Slapd};
use crate::site::{MAP, Site};
use cardhour_test_prometheus::free_port;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// aiosmtpd with one user, that tells of each mail in a line of json what Python's own parser makes of it. It ends when its standard input does.
const SERVER: &str = r#"
import email, email.policy, json, sys
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

class Keep:
    async def handle_DATA(self, server, session, envelope):
        raw = envelope.content
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        head = raw.split(b"\r\n\r\n")[0]
        print(json.dumps({
            "envelope_from": envelope.mail_from, "envelope_to": envelope.rcpt_tos, "names": [name.lower() for name in mail.keys()],
            "subject": str(mail["subject"]), "from": str(mail["from"]), "id": str(mail["message-id"]), "date": str(mail["date"]),
            "to": [[address.display_name, address.addr_spec] for address in mail["to"].addresses],
            "text": mail.get_content(), "ascii": all(byte < 128 for byte in head), "defects": [str(defect) for defect in mail.defects],
        }), flush=True)
        return "250 kept"

def of_user(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"books", b"mail secret"), handled=False)

server = Controller(Keep(), hostname="127.0.0.1", port=int(sys.argv[1]), authenticator=of_user, auth_required=True, auth_require_tls=False)
server.start()
print(json.dumps("ready"), flush=True)
sys.stdin.read()
server.stop()
"#;

/// A mail server on loopback, and what it got.
struct MailServer {
    child: Child,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl MailServer {
    /// Whether there is the package for it.
    fn is_there(test: &str) -> bool {
        let status = python().args(["-c", "import aiosmtpd"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let is_there = status.is_ok_and(|status| status.success());
        if !is_there {
            assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "{test}: no aiosmtpd");
            let _ = writeln!(std::io::stderr(), "skipped: {test} needs aiosmtpd, of tests/requirements.txt");
        }
        is_there
    }

    fn on(port: u16) -> Self {
        let mut child = python()
            .args(["-c", SERVER, &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "\"ready\"");
        let mails = Arc::new(Mutex::new(Vec::new()));
        let into = mails.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                into.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, mails }
    }

    /// All mails, once there are so many. The server told of each before it took it.
    #[track_caller]
    fn wait_for(&self, many: usize) -> Vec<Value> {
        let since = Instant::now();
        loop {
            let mails = self.mails.lock().unwrap().clone();
            if mails.len() >= many {
                return mails;
            }
            assert!(since.elapsed() < Duration::from_secs(30), "{many} mails never came: {mails:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python() -> Command {
    Command::new(std::env::var_os("CARDHOUR_PYTHON").unwrap_or_else(|| "python3".into()))
}

/// A site on which each of some users held 8 cards for 2 hours, 16 card-hours, and the month in which a year begins half a year from now.
fn held_by(users: &[&str]) -> (Site, u32) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let hour = now / 3600 * 3600;
    let ((start, month), (end, _)) = (instant(hour - 3 * 3600), instant(hour - 3600));
    let site = Site::new();
    let rows: String =
        (1..).zip(users).map(|(id, user)| format!("{id},\"{user}\",vision,8,h200,{start},{end}\n")).collect();
    let jobs = site.file("jobs.csv", format!("id,who,team,cards,model,start,end\n{rows}"));
    let map = site.file("map.toml", MAP);
    site.import(&format!("jobs {jobs} --map {map}"));
    (site, (month + 5) % 12 + 1)
}

/// A budget of each user for a year, of which one threshold can be reached.
fn budgets_of(site: &Site, starts: u32, users: &[&str], hours: u32) {
    let budget = |user: &&str| {
        format!("[[budget]]\nname = \"of {user}\"\nuser = \"{user}\"\ncard_hours = {hours}\nperiod = \"year\"\n")
    };
    let all: String = users.iter().map(budget).collect();
    write_budgets(site, &format!("fiscal_year_starts = {starts}\nthresholds = [50]\n{all}"));
}

fn addresses(mail: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    mail["to"].as_array().unwrap().iter().map(|to| (text(&to[0]), text(&to[1]))).collect()
}

/// 16 of 20 card-hours: one threshold of each of three budgets. 预算 in a subject goes as an encoded word and comes back as itself. Nobody can have a mail at the address of the user of the
/// third: that one isn't delivered and is said, and keeps nobody else's back.
#[test]
fn t16_a_mail_arrives_once_with_its_headers_and_a_bad_address_keeps_no_other_back() {
    let name = "t16_a_mail_arrives_once_with_its_headers_and_a_bad_address_keeps_no_other_back";
    if !MailServer::is_there(name) {
        return;
    }
    let (site, starts) = held_by(&["ann", "ann lee"]);
    let budget = |name: &str| format!("[[budget]]\nname = \"{name}\"\ncard_hours = 20\nperiod = \"year\"\n");
    let text = format!("fiscal_year_starts = {starts}\nthresholds = [50]\n");
    let evil = budget("evil").replace("card_hours", "user = \"ann lee\"\ncard_hours");
    write_budgets(&site, &(text + &evil + &budget("预算 Süd") + &budget("two")));
    let port = free_port();
    let password = site.file("smtp.password", "mail secret\n");
    let config = site.file(
        "config.toml",
        format!(
            "[alerts]\nsmtp = \"smtp://127.0.0.1:{port}\"\nsmtp_user = \"books\"\nsmtp_password_file = \"{password}\"\n\
             mail_from = \"Books <books@pool.example>\"\nmail_to = [\"finance@pool.example\"]\n\
             [people]\nmail = \"{{user}}@pool.example\"\n"
        ),
    );
    let notify = || site.run(&format!("budgets --notify --config {config}"));
    let answer = notify();
    assert_eq!((answer.code, told(&answer)), (Some(3), 0), "nobody listens: {}", answer.err);
    assert!(answer.err.contains("not delivered, mail:"), "{}", answer.err);

    let server = MailServer::on(port);
    let answer = notify();
    assert_eq!((answer.code, told(&answer)), (Some(3), 2), "{}", answer.err);
    assert!(answer.err.contains("is no address"), "{}", answer.err);
    let mails = server.wait_for(2);
    for mail in &mails {
        assert_eq!(
            (&mail["envelope_from"], &mail["from"]),
            (&"books@pool.example".into(), &"Books <books@pool.example>".into())
        );
        assert_eq!(mail["envelope_to"], serde_json::json!(["finance@pool.example"]));
        assert_eq!(addresses(mail), [(String::new(), "finance@pool.example".to_owned())]);
        assert_eq!((&mail["ascii"], &mail["defects"]), (&true.into(), &serde_json::json!([])), "{mail}");
        assert_ne!(mail["date"], "None");
        let names: Vec<&str> = mail["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert!(!names.contains(&"bcc") && !names.contains(&"cc"), "{names:?}");
    }
    let subject = |mail: &Value| mail["subject"].as_str().unwrap().to_owned();
    let of = |part: &str| mails.iter().find(|mail| subject(mail).contains(part)).unwrap_or_else(|| panic!("{mails:?}"));
    assert!(subject(of("预算 Süd")).starts_with("[cardhour] budget 预算 Süd"), "{mails:?}");
    assert!(subject(of("two")).starts_with("[cardhour] budget two, "), "{mails:?}");
    let is_of_pool = |mail: &Value| mail["id"].as_str().unwrap().ends_with("@pool.example>");
    assert!(mails.iter().all(is_of_pool) && mails[0]["id"] != mails[1]["id"], "{mails:?}");

    let answer = notify();
    assert_eq!((answer.code, told(&answer)), (Some(3), 0), "{}", answer.err);
    std::fs::write(&password, "another\n").unwrap();
    write_budgets(&site, &format!("fiscal_year_starts = {starts}\nthresholds = [75]\n{}", budget("预算 Süd")));
    let answer = notify();
    assert_eq!((answer.code, told(&answer)), (Some(3), 0), "the server refuses: {}", answer.err);
    assert_eq!(server.wait_for(2).len(), 2);
}

/// Ann is in the directory with a name, bob without an address, eve with a name of two lines, `Eve` and `Bcc: all@pool.example`, and `x)(uid=ann` would be ann if the filter took it as it is.
/// Finance gets all.
#[test]
fn users_are_told_by_the_address_that_the_directory_has() {
    let name = "users_are_told_by_the_address_that_the_directory_has";
    let people = "ann|ann.angstrom@pool.example|Ann Ängström\nbob|-|Bob\neve|eve@pool.example|:RXZlDQpCY2M6IGFsbEBwb29sLmV4YW1wbGU=";
    let Some(mut slapd) = Slapd::with(people, name) else { return };
    if !MailServer::is_there(name) {
        return;
    }
    let users = ["ann", "bob", "eve", "x)(uid=ann"];
    let (site, starts) = held_by(&users);
    budgets_of(&site, starts, &users, 20);
    let (port, secret) = (free_port(), site.file("ldap.password", format!("{PASSWORD}\n")));
    let server = MailServer::on(port);
    let smtp = site.file("smtp.password", "mail secret\n");
    let config = |file: &str, ldap: &str| {
        site.file(
            file,
            format!(
                "[alerts]\nsmtp = \"smtp://127.0.0.1:{port}\"\nsmtp_user = \"books\"\nsmtp_password_file = \"{smtp}\"\n\
                 mail_from = \"books@pool.example\"\nmail_to = [\"finance@pool.example\"]\n[people.ldap]\nbase = \"{BASE}\"\n\
                 bind_dn = \"{READER}\"\npassword_file = \"{secret}\"\nfilter = \"(|(uid={{user}}))\"\ntimeout = \"5s\"\n{ldap}"
            ),
        )
    };
    let certificate = slapd.certificate().display().to_string();
    let plain = config("plain.toml", &format!("url = \"ldap://localhost:{}\"\n", slapd.port));
    let trusted = format!("ca_file = \"{certificate}\"\n");
    let starttls = format!("url = \"ldap://localhost:{}\"\nstarttls = true\n", slapd.port);
    let ldaps = format!("url = \"ldaps://localhost:{}\"\n", slapd.tls_port);
    let (believed, unknown) =
        (config("starttls.toml", &(starttls.clone() + &trusted)), config("unknown.toml", &starttls));
    let ldaps = config("ldaps.toml", &(ldaps + &trusted));
    let notify = |config: &str| site.run(&format!("budgets --notify --config {config}"));

    let answer = notify(&plain);
    assert_eq!((answer.code, told(&answer)), (Some(3), 0), "the directory is away: {}", answer.err);
    assert!(answer.err.contains("the directory ldap://localhost:"), "{}", answer.err);
    slapd.start();
    let answer = notify(&plain);
    assert_eq!((answer.code, told(&answer)), (Some(0), 4), "{}", answer.err);
    let mails = server.wait_for(4);
    let finance = (String::new(), "finance@pool.example".to_owned());
    let ann = ("Ann Ängström".to_owned(), "ann.angstrom@pool.example".to_owned());
    let eve = ("Eve Bcc: all@pool.example".to_owned(), "eve@pool.example".to_owned());
    for mail in &mails {
        let is_of = |user: &str| mail["subject"].as_str().unwrap().contains(&format!("budget of {user},"));
        let user = if is_of("ann") { Some(&ann) } else { Some(&eve).filter(|_| is_of("eve")) };
        let expected: Vec<_> = [&finance].into_iter().chain(user).cloned().collect();
        assert_eq!((addresses(mail), &mail["ascii"]), (expected, &true.into()), "{mail}");
    }

    // A larger limit, so that all is over: told by StartTLS, of a certificate that somebody vouches for.
    budgets_of(&site, starts, &users, 100);
    let answer = notify(&unknown);
    assert_eq!((answer.code, told(&answer)), (Some(3), 0), "nobody vouches for it: {}", answer.err);
    assert!(answer.err.contains("certificate"), "{}", answer.err);
    assert_eq!(told(&notify(&believed)), 4);
    budgets_of(&site, starts, &users, 30);
    assert_eq!(told(&notify(&ldaps)), 4);
    let mails = server.wait_for(12);
    assert_eq!(mails.iter().filter(|mail| addresses(mail).contains(&ann)).count(), 3, "{mails:?}");
    assert_eq!(mails.len(), 12);
}
