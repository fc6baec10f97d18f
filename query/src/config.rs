//! The config file: where the ledger is, what the service listens on, how far SQL may go.
//!
//! Looked for at `--config`, else `$XDG_CONFIG_HOME/cardhour/config.toml` (`~/.config` where that isn't set), else
//! `/etc/cardhour/config.toml`; none of them is no fault. Checked wholly when read: every fault is reported at once, with
//! its key path. `cardhour config` prints what is in force.
//!
//! Start at [`Config::load`].

mod alerts;
mod deliveries;
mod inference;
mod ldap;

pub use deliveries::{DeliveryConfig, Destination, StatementFormat, What, report_format};
pub use inference::InferenceConfig;

use cardhour_bucket::{Bucket, Settings};
use cardhour_domain::Zone;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::{Table, Value};

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file it was read from; none: all defaults.
    pub file: Option<PathBuf>,
    /// The ledger's folder or URL; none: the default place, see [`ledger_place`].
    pub ledger: Option<String>,
    /// Billing zone of a ledger that is made; an existing one keeps its own (LED-9).
    pub zone: Option<Zone>,
    /// Where the service keeps its token; none: `token` in the ledger's folder.
    pub token_file: Option<PathBuf>,
    /// What the service listens on.
    pub http_address: SocketAddr,
    /// With which certificate; none: without TLS, on this machine alone.
    pub tls: Option<TlsFiles>,
    /// How far one query may go.
    pub sql: SqlLimits,
    /// The bucket into which nodes put segments of this ledger; none: they come by themselves or lie in its folder.
    pub incoming: Option<BucketConfig>,
    /// Who is told what happens.
    pub alerts: AlertsConfig,
    /// Where people are found.
    pub people: PeopleConfig,
    /// What is delivered by schedule, in the order of the file.
    pub deliveries: Vec<DeliveryConfig>,
    /// Who is asked how fast services answer; none: nobody.
    pub inference: Option<InferenceConfig>,
}

/// A bucket, and who asks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketConfig {
    /// As it is written.
    pub settings: Settings,
    /// The same, checked.
    pub bucket: Bucket,
    /// Who asks it; none: the environment says.
    pub credentials_file: Option<PathBuf>,
    /// Certificates (PEM) of who may vouch for it; none: the system's.
    pub ca_file: Option<PathBuf>,
}

/// Who is told what happens; nobody by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertsConfig {
    /// Alertmanager, by the address under which its `/api/v2` lies.
    pub alertmanager: Option<Endpoint>,
    /// A webhook.
    pub webhook: Option<Endpoint>,
    /// Roots that both may have their certificates from, beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// Mail.
    pub mail: Option<MailConfig>,
}

/// An address over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As it was written.
    pub url: String,
    /// Its host.
    pub host: String,
    /// A file with a bearer token.
    pub token_file: Option<PathBuf>,
}

/// How mail is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailConfig {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the way to it is kept from others' eyes.
    pub security: MailSecurity,
    /// A user, and the file with the password.
    pub login: Option<(String, PathBuf)>,
    /// Who writes.
    pub from: String,
    /// Who gets all of it.
    pub to: Vec<String>,
}

/// How the way to a mail server is kept from others' eyes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailSecurity {
    /// TLS from the first byte: `smtps://`.
    Tls,
    /// TLS after a word in the open: `smtp://`.
    StartTls,
    /// Not at all: `smtp://` of this machine.
    ThisMachine,
}

/// Where people are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeopleConfig {
    /// A mail address with `{user}` in it.
    pub mail: Option<String>,
    /// A file of lines `USER,ADDRESS`; it goes before the others.
    pub file: Option<PathBuf>,
    /// A directory; it goes before the template.
    pub ldap: Option<LdapConfig>,
}

/// A directory of people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdapConfig {
    /// The server: `ldaps://` or `ldap://`.
    pub url: String,
    /// Whether an `ldap://` changes to TLS before anything is said.
    pub starttls: bool,
    /// Who asks, by distinguished name, and the file with the password; none: nobody in particular.
    pub login: Option<(String, PathBuf)>,
    /// Below what people are.
    pub base: String,
    /// What finds one of them: an LDAP filter with `{user}` in it.
    pub filter: String,
    /// The attribute with the address.
    pub mail: String,
    /// The attribute with the name.
    pub name: String,
    /// Roots that it may have its certificate from, beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// After that it isn't asked any further.
    pub timeout: Duration,
    /// For so long it isn't asked again for who was found.
    pub cache: Duration,
}

impl LdapConfig {
    /// Whether nobody on the way can read what is said.
    pub fn is_encrypted(&self) -> bool {
        self.starttls || self.url.starts_with("ldaps://")
    }
}

/// A certificate with its chain, and its key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and what leads from it to its root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// How far one query over HTTP or on the command line may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlLimits {
    /// After that it is stopped.
    pub timeout: Duration,
    /// Memory of its sorts, joins and groups. Unit: MiB.
    pub memory_mib: u64,
    /// Rows it may give; more is an error that says so, never a cut answer.
    pub max_rows: u64,
}

impl Default for SqlLimits {
    fn default() -> Self {
        // A dashboard waits about 30 seconds for an answer; a month of a thousand cards sorts in a quarter of that memory;
        // a million rows is what a spreadsheet takes.
        Self { timeout: Duration::from_secs(30), memory_mib: 1024, max_rows: 1_000_000 }
    }
}

/// Port 7780 of this machine alone.
pub const DEFAULT_HTTP_ADDRESS: &str = "127.0.0.1:7780";

impl Default for Config {
    fn default() -> Self {
        Self {
            file: None,
            ledger: None,
            zone: None,
            token_file: None,
            http_address: DEFAULT_HTTP_ADDRESS.parse().expect("an address"),
            tls: None,
            sql: SqlLimits::default(),
            incoming: None,
            alerts: AlertsConfig::default(),
            people: PeopleConfig::default(),
            deliveries: Vec::new(),
            inference: None,
        }
    }
}

/// Why there is no config.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("cannot read config file {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no TOML.
    #[error("config file {} is no TOML", path.display())]
    Toml {
        /// Which.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// Some keys are wrong.
    #[error("config file {} has {} fault(s):\n  {}", path.display(), faults.len(), faults.join("\n  "))]
    Faults {
        /// Which.
        path: PathBuf,
        /// Every one, each with its key path.
        faults: Vec<String>,
    },
}

/// What the surroundings say: the variables that decide where things lie.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// `$XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<PathBuf>,
    /// `$XDG_DATA_HOME`.
    pub xdg_data_home: Option<PathBuf>,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$USER`.
    pub user: Option<String>,
    /// Whether the user is root.
    pub is_root: bool,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            xdg_config_home: folder("XDG_CONFIG_HOME"),
            xdg_data_home: folder("XDG_DATA_HOME"),
            home: folder("HOME"),
            user: std::env::var("USER").ok(),
            is_root: is_root(),
        }
    }

    /// Where a config file is looked for, the first that exists counts.
    pub fn config_files(&self) -> Vec<PathBuf> {
        let user = self.xdg_config_home.clone().or_else(|| self.home.as_ref().map(|home| home.join(".config")));
        let mut files: Vec<PathBuf> = user.into_iter().map(|folder| folder.join("cardhour/config.toml")).collect();
        files.push(PathBuf::from("/etc/cardhour/config.toml"));
        files
    }

    /// Where the ledger is when nobody says; none without a home.
    pub fn default_ledger(&self) -> Option<PathBuf> {
        if let Some(data) = &self.xdg_data_home {
            return Some(data.join("cardhour"));
        }
        if self.is_root {
            return Some(PathBuf::from("/var/lib/cardhour"));
        }
        self.home.as_ref().map(|home| home.join(".local/share/cardhour"))
    }
}

/// Whether this process runs as root: the owner of `/proc/self`, where there is one.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Where the ledger is: the command's word, else the config's, else the default place.
pub fn ledger_place(asked: Option<&str>, config: &Config, surroundings: &Surroundings) -> Option<String> {
    asked
        .map(str::to_owned)
        .or_else(|| config.ledger.clone())
        .or_else(|| surroundings.default_ledger().map(|folder| folder.display().to_string()))
}

impl Config {
    /// From the file asked for, else the first that exists, else the defaults. Errors: a file asked for that isn't there, one
    /// that is no TOML, and every fault in it.
    pub fn load(asked: Option<&Path>, surroundings: &Surroundings) -> Result<Self, ConfigError> {
        let Some(path) =
            asked.map(Path::to_owned).or_else(|| surroundings.config_files().into_iter().find(|path| path.exists()))
        else {
            return Ok(Self::default());
        };
        let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Read { path: path.clone(), source })?;
        Self::parse(&text, &path)
    }

    /// From the text of the file `path`. Errors: as [`Self::load`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let table: Table =
            text.parse().map_err(|source| ConfigError::Toml { path: path.to_owned(), source: Box::new(source) })?;
        let mut config = Self { file: Some(path.to_owned()), ..Self::default() };
        let mut faults = Vec::new();
        let (mut certificate, mut key_file) = (None, None);
        let mut alerts = alerts::Alerts::default();
        let mut inference = inference::Keys::default();
        let mut ldap_section = None;
        for (key, value) in &table {
            let fault = match key.as_str() {
                "ledger" => text_of(value).map(|text| config.ledger = Some(text.to_owned())),
                "zone" => text_of(value).and_then(|text| {
                    config.zone = Some(Zone::parse(text).map_err(|error| error.to_string())?);
                    Ok(())
                }),
                "token_file" => text_of(value).map(|text| config.token_file = Some(text.into())),
                "http" => section(value, "http", &mut faults, |key, value| match key {
                    "address" => {
                        config.http_address = text_of(value)?
                            .parse()
                            .map_err(|_| "not an address with a port such as \"127.0.0.1:7780\"".to_owned())?;
                        Ok(())
                    }
                    "certificate_file" => text_of(value).map(|text| certificate = Some(PathBuf::from(text))),
                    "key_file" => text_of(value).map(|text| key_file = Some(PathBuf::from(text))),
                    _ => Err(unknown(&["address", "certificate_file", "key_file"])),
                }),
                "sql" => section(value, "sql", &mut faults, |key, value| match key {
                    "timeout" => {
                        config.sql.timeout = parse_duration(text_of(value)?)?;
                        Ok(())
                    }
                    "memory_mib" => {
                        config.sql.memory_mib = count_of(value)?;
                        Ok(())
                    }
                    "max_rows" => {
                        config.sql.max_rows = count_of(value)?;
                        Ok(())
                    }
                    _ => Err(unknown(&["timeout", "memory_mib", "max_rows"])),
                }),
                "incoming" => config.read_incoming(value, &mut faults),
                "alerts" => section(value, "alerts", &mut faults, |key, value| alerts.read(key, value)),
                "people" => section(value, "people", &mut faults, |key, value| match key {
                    "mail" => match text_of(value)? {
                        text if text.contains("{user}") => {
                            config.people.mail = Some(text.to_owned());
                            Ok(())
                        }
                        _ => Err("has no {user} in it, so that all people would be one".to_owned()),
                    },
                    "file" => text_of(value).map(|text| config.people.file = Some(text.into())),
                    "ldap" => {
                        ldap_section = Some(value.as_table().ok_or("not a section [people.ldap]")?.clone());
                        Ok(())
                    }
                    _ => Err(unknown(&["mail", "file", "ldap"])),
                }),
                "inference" => section(value, "inference", &mut faults, |key, value| inference.read(key, value)),
                "delivery" => deliveries::read(value, &mut faults).map(|read| config.deliveries = read),
                _ => Err(unknown(&[
                    "ledger",
                    "zone",
                    "token_file",
                    "http",
                    "sql",
                    "incoming",
                    "alerts",
                    "people",
                    "delivery",
                    "inference",
                ])),
            };
            if let Err(fault) = fault {
                faults.push(format!("{key}: {fault}"));
            }
        }
        match (certificate, key_file) {
            (Some(certificate), Some(key)) => config.tls = Some(TlsFiles { certificate, key }),
            (None, None) => {}
            _ => faults.push("http.certificate_file, http.key_file: one is there without the other".to_owned()),
        }
        // What is taken in is removed: it must not go to whichever ledger is looked at.
        if config.incoming.is_some() && config.ledger.is_none() {
            faults.push("incoming: ledger has to say which ledger takes from there".to_owned());
        }
        // Nor are figures of some other ledger what people wait for.
        if !config.deliveries.is_empty() && config.ledger.is_none() {
            faults.push("delivery: ledger has to say whose months are delivered".to_owned());
        }
        config.inference = inference.finish(&mut faults);
        config.alerts = alerts.finish(&mut faults);
        config.people.ldap = ldap_section.and_then(|table| ldap::read(&table, &mut faults));
        if faults.is_empty() { Ok(config) } else { Err(ConfigError::Faults { path: path.to_owned(), faults }) }
    }

    fn read_incoming(&mut self, value: &Value, faults: &mut Vec<String>) -> Result<(), String> {
        let (mut settings, mut credentials_file, mut ca_file) = (Settings::default(), None, None);
        section(value, "incoming", faults, |key, value| {
            match key {
                "bucket" => settings.bucket = text_of(value)?.to_owned(),
                "endpoint" => settings.endpoint = Some(text_of(value)?.to_owned()),
                "region" => settings.region = Some(text_of(value)?.to_owned()),
                "path_style" => settings.path_style = Some(value.as_bool().ok_or("neither true nor false")?),
                "credentials_file" => credentials_file = Some(PathBuf::from(text_of(value)?)),
                "ca_file" => ca_file = Some(PathBuf::from(text_of(value)?)),
                _ => {
                    return Err(unknown(&[
                        "bucket",
                        "endpoint",
                        "region",
                        "path_style",
                        "credentials_file",
                        "ca_file",
                    ]));
                }
            }
            Ok(())
        })?;
        match Bucket::new(&settings) {
            Ok(bucket) => self.incoming = Some(BucketConfig { settings, bucket, credentials_file, ca_file }),
            Err(of_bucket) => faults.extend(of_bucket.iter().map(|fault| format!("incoming.{fault}"))),
        }
        Ok(())
    }

    /// As a config file that says all that is in force, with where it came from.
    pub fn to_toml(&self, ledger: Option<&str>) -> String {
        let mut out = match &self.file {
            Some(file) => format!("# in force, read from {}\n", file.display()),
            None => "# in force: no config file was found, these are the defaults\n".to_owned(),
        };
        let mut optional = |key: &str, value: Option<String>, otherwise: &str| {
            match value {
                Some(value) => writeln!(out, "{key} = {}", Value::String(value)),
                None => writeln!(out, "# {key}: {otherwise}"),
            }
            .expect("a string takes all")
        };
        optional("ledger", ledger.map(str::to_owned), "no home folder, so no default place");
        optional("zone", self.zone.map(|zone| zone.name().to_owned()), "UTC, or the one of the ledger");
        let token = self.token_file.as_ref().map(|path| path.display().to_string());
        optional("token_file", token, "\"token\" in the ledger's folder");
        let tls = match &self.tls {
            Some(TlsFiles { certificate, key }) => {
                let text = |path: &Path| Value::String(path.display().to_string());
                format!("certificate_file = {}\nkey_file = {}\n", text(certificate), text(key))
            }
            None => "# certificate_file, key_file: none, so no TLS, and on this machine alone\n".to_owned(),
        };
        let _ = write!(
            out,
            "\n[http]\naddress = \"{}\"\n{tls}\n[sql]\ntimeout = \"{}\"\nmemory_mib = {}\nmax_rows = {}\n",
            self.http_address,
            duration_text(self.sql.timeout),
            self.sql.memory_mib,
            self.sql.max_rows
        );
        if let Some(incoming) = &self.incoming {
            incoming.to_toml(&mut out);
        }
        out.push_str(&alerts::to_toml(&self.alerts, &self.people));
        if let Some(inference) = &self.inference {
            out.push_str(&inference::to_toml(inference));
        }
        out.push_str(&deliveries::to_toml(&self.deliveries));
        out
    }
}

impl BucketConfig {
    fn to_toml(&self, out: &mut String) {
        let _ = writeln!(out, "\n[incoming]\nbucket = {}", Value::String(self.settings.bucket.clone()));
        out.push_str(&self.more());
    }

    /// The keys beside the bucket, a line each.
    fn more(&self) -> String {
        let mut out = String::new();
        let file = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        for (key, value) in [
            ("endpoint", self.settings.endpoint.clone()),
            ("region", self.settings.region.clone()),
            ("credentials_file", file(&self.credentials_file)),
            ("ca_file", file(&self.ca_file)),
        ] {
            if let Some(value) = value {
                let _ = writeln!(out, "{key} = {}", Value::String(value));
            }
        }
        if let Some(path_style) = self.settings.path_style {
            let _ = writeln!(out, "path_style = {path_style}");
        }
        out
    }
}

/// Reads each key of a section; faults are added with their key path.
fn section(
    value: &Value,
    name: &str,
    faults: &mut Vec<String>,
    mut read: impl FnMut(&str, &Value) -> Result<(), String>,
) -> Result<(), String> {
    let table = value.as_table().ok_or_else(|| format!("not a section [{name}]"))?;
    for (key, value) in table {
        if let Err(fault) = read(key, value) {
            faults.push(format!("{name}.{key}: {fault}"));
        }
    }
    Ok(())
}

fn unknown(known: &[&str]) -> String {
    format!("no such key; known here: {}", known.join(", "))
}

fn text_of(value: &Value) -> Result<&str, String> {
    match value.as_str() {
        Some("") => Err("empty; leave the key out instead".to_owned()),
        Some(text) => Ok(text),
        None => Err(format!("not a text in quotes but {}", value.type_str())),
    }
}

fn count_of(value: &Value) -> Result<u64, String> {
    value
        .as_integer()
        .and_then(|count| u64::try_from(count).ok())
        .filter(|count| *count > 0)
        .ok_or_else(|| "not a whole number above zero".to_owned())
}

/// Reads `500ms`, `30s`, `5m`, `1h`. Errors: anything else, or nothing at all.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let error = || format!("{text:?} is not a duration such as 500ms, 30s, 5m or 1h");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| error())?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(error()),
    };
    number.checked_mul(unit_ms).filter(|ms| *ms > 0).map(Duration::from_millis).ok_or_else(error)
}

/// The same, written with the largest unit that is exact.
pub fn duration_text(duration: Duration) -> String {
    let ms = duration.as_millis();
    for (unit_ms, unit) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if ms >= unit_ms && ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", ms / unit_ms);
        }
    }
    format!("{ms}ms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("config.toml"))
    }

    #[test]
    fn every_fault_is_told_at_once_with_its_key_path() {
        let text = r#"
            ledger = ""
            zone = "Asia/Atlantis"
            colour = "red"
            [http]
            address = "7780"
            port = 7780
            [sql]
            timeout = "30"
            memory_mib = -1
            max_rows = "many"
        "#;
        assert_snapshot!(parse(text).unwrap_err(), @r#"
        config file config.toml has 8 fault(s):
          colour: no such key; known here: ledger, zone, token_file, http, sql, incoming, alerts, people, delivery, inference
          http.address: not an address with a port such as "127.0.0.1:7780"
          http.port: no such key; known here: address, certificate_file, key_file
          ledger: empty; leave the key out instead
          sql.max_rows: not a whole number above zero
          sql.memory_mib: not a whole number above zero
          sql.timeout: "30" is not a duration such as 500ms, 30s, 5m or 1h
          zone: "Asia/Atlantis" is not an IANA time zone such as Asia/Shanghai
        "#);
    }

    #[test]
    fn what_is_printed_is_what_was_read() {
        let text = r#"
            ledger = "/srv/books"
            zone = "Asia/Shanghai"
            [http]
            address = "[::1]:8080"
            [sql]
            timeout = "90s"
        "#;
        let config = parse(text).unwrap();
        let printed = config.to_toml(config.ledger.as_deref());
        assert_snapshot!(printed, @r#"
        # in force, read from config.toml
        ledger = "/srv/books"
        zone = "Asia/Shanghai"
        # token_file: "token" in the ledger's folder

        [http]
        address = "[::1]:8080"
        # certificate_file, key_file: none, so no TLS, and on this machine alone

        [sql]
        timeout = "90s"
        memory_mib = 1024
        max_rows = 1000000

        [alerts]
        # alertmanager, webhook, smtp: none, so nobody is told of anything

        [people]
        # mail, file, ldap: none, so nobody has an address
        "#);
        assert_eq!(parse(&printed).unwrap(), config);
    }

    #[test]
    fn a_bucket_belongs_to_the_ledger_that_the_same_file_names() {
        let section = "[incoming]\nbucket = \"s3://pool/lab\"\nendpoint = \"https://minio.example\"\ncredentials_file = \"/etc/cardhour/bucket\"\npath_style = true\n";
        let config = parse(&format!("ledger = \"/srv/books\"\n{section}")).unwrap();
        let incoming = config.incoming.clone().unwrap();
        assert_eq!(incoming.bucket.to_string(), "s3://pool/lab at https://minio.example");
        assert_eq!(parse(&config.to_toml(Some("/srv/books"))).unwrap(), config);
        let alone = parse(section).unwrap_err().to_string();
        assert!(alone.contains("incoming: ledger has to say which ledger takes from there"), "{alone}");
        let text = "ledger = \"x\"\n[incoming]\nendpoint = \"http://minio\"\nsecret = \"s3cret\"\n";
        let faults = parse(text).unwrap_err().to_string();
        for part in
            ["incoming.bucket: \"\" is no bucket", "incoming.endpoint: ", "use https", "incoming.secret: no such key"]
        {
            assert!(faults.contains(part), "{part}: {faults}");
        }
        assert!(!faults.contains("s3cret"), "{faults}");
    }

    #[test]
    fn a_user_of_this_machine_has_a_place_of_their_own() {
        let home = |is_root| Surroundings { home: Some("/home/ann".into()), is_root, ..Surroundings::default() };
        assert_eq!(home(false).default_ledger().unwrap(), Path::new("/home/ann/.local/share/cardhour"));
        assert_eq!(home(true).default_ledger().unwrap(), Path::new("/var/lib/cardhour"));
        let xdg = Surroundings { xdg_data_home: Some("/data".into()), ..home(true) };
        assert_eq!(xdg.default_ledger().unwrap(), Path::new("/data/cardhour"));
        assert_eq!(home(false).config_files()[0], Path::new("/home/ann/.config/cardhour/config.toml"));
        assert_eq!(Surroundings::default().default_ledger(), None);
    }

    #[test]
    fn the_command_line_goes_before_the_config_and_that_before_the_default_place() {
        let home = Surroundings { home: Some("/home/ann".into()), ..Surroundings::default() };
        let config = Config { ledger: Some("/srv/books".into()), ..Config::default() };
        assert_eq!(ledger_place(Some("here"), &config, &home).unwrap(), "here");
        assert_eq!(ledger_place(None, &config, &home).unwrap(), "/srv/books");
        let place = ledger_place(None, &Config::default(), &home).unwrap();
        assert_eq!(place, "/home/ann/.local/share/cardhour");
    }

    #[test]
    fn no_config_file_at_all_is_no_fault_but_one_asked_for_must_be_there() {
        let empty = tempfile::tempdir().unwrap();
        let nowhere = Surroundings { xdg_config_home: Some(empty.path().to_owned()), ..Surroundings::default() };
        if !Path::new("/etc/cardhour/config.toml").exists() {
            assert_eq!(Config::load(None, &nowhere).unwrap(), Config::default());
        }
        assert!(matches!(Config::load(Some(&empty.path().join("a.toml")), &nowhere), Err(ConfigError::Read { .. })));
    }
}
