//! A real directory for tests: OpenLDAP's slapd on loopback, with a folder of its own, ended with the test.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Below what its people are.
pub const BASE: &str = "ou=people,dc=pool,dc=example";
/// Who may read them.
pub const READER: &str = "cn=cardhour,dc=pool,dc=example";
/// The reader's password.
pub const PASSWORD: &str = "a secret";

/// Nobody reads without a password, and nobody reads passwords. Without TLS nothing is refused: what cardhour does on an open way is its own matter.
const CONFIG: &str = r#"
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile DIR/slapd.pid
argsfile DIR/slapd.args
TLSCACertificateFile DIR/server.crt
TLSCertificateFile DIR/server.crt
TLSCertificateKeyFile DIR/server.key
database mdb
suffix "dc=pool,dc=example"
directory DIR/data
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="cn=cardhour,dc=pool,dc=example" read by * none
"#;

const ENTRIES: &str = "dn: dc=pool,dc=example\nobjectClass: domain\ndc: pool\n\n\
    dn: cn=cardhour,dc=pool,dc=example\nobjectClass: person\ncn: cardhour\nsn: cardhour\nuserPassword: a secret\n\n\
    dn: ou=people,dc=pool,dc=example\nobjectClass: organizationalUnit\nou: people\n\n";

/// A running slapd, or one that is to be started.
pub struct Slapd {
    folder: tempfile::TempDir,
    /// Of `ldap://`.
    pub port: u16,
    /// Of `ldaps://`.
    pub tls_port: u16,
    child: Option<Child>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Debian has it where not everybody looks.
fn program(name: &str) -> PathBuf {
    let of_system = Path::new("/usr/sbin").join(name);
    if of_system.exists() { of_system } else { name.into() }
}

impl Slapd {
    /// One with people, a line each: `UID|MAIL|NAME`, the mail `-` for none, the name after a colon in base 64. It isn't started. None, said aloud, where there is no slapd or openssl.
    pub fn with(people: &str, test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let has_slapd = Command::new(program("slapd")).arg("-VV").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if has_slapd.is_err() || !make_certificate(folder.path()) {
            assert!(
                std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"),
                "{test}: no slapd or openssl"
            );
            let _ = writeln!(std::io::stderr(), "skipped: {test} needs Debian's packages slapd and openssl");
            return None;
        }
        let config = CONFIG.replace("DIR", &folder.path().display().to_string());
        std::fs::write(folder.path().join("slapd.conf"), config).unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let mut entries = ENTRIES.to_owned();
        for person in people.lines() {
            let [uid, mail, name] = person.split('|').collect::<Vec<_>>()[..] else { panic!("{person}") };
            let name = if name.starts_with(':') { name.replacen(':', ": ", 1) } else { format!(" {name}") };
            entries += &format!("dn: uid={uid},{BASE}\nobjectClass: inetOrgPerson\nuid: {uid}\nsn: {uid}\ncn:{name}\n");
            entries += &if mail == "-" { "\n".to_owned() } else { format!("mail: {mail}\n\n") };
        }
        std::fs::write(folder.path().join("people.ldif"), entries).unwrap();
        let config = folder.path().join("slapd.conf");
        let added = Command::new(program("slapadd"))
            .arg("-f")
            .arg(&config)
            .arg("-l")
            .arg(folder.path().join("people.ldif"))
            .output()
            .unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        Some(Self { folder, port: free_port(), tls_port: free_port(), child: None })
    }

    /// The certificate that it shows, for localhost.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.crt")
    }

    pub fn start(&mut self) {
        let urls = format!("ldap://localhost:{} ldaps://localhost:{}", self.port, self.tls_port);
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        // A level of debugging keeps it in the foreground, so that its pid is the child's.
        let child = Command::new(program("slapd"))
            .arg("-f")
            .arg(self.folder.path().join("slapd.conf"))
            .args(["-h", &urls, "-d", "0"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        let since = Instant::now();
        let listens = |port: u16| std::net::TcpStream::connect(("localhost", port)).is_ok();
        while !listens(self.port) || !listens(self.tls_port) {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
            assert!(since.elapsed() < Duration::from_secs(30), "slapd never listens\n{log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Slapd {
    fn drop(&mut self) {
        self.stop();
    }
}

fn make_certificate(folder: &Path) -> bool {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=CA:FALSE"])
        .arg("-keyout")
        .arg(folder.join("server.key"))
        .arg("-out")
        .arg(folder.join("server.crt"))
        .output();
    made.is_ok_and(|made| made.status.success())
}
