//! Which bucket, and where it is.

use std::fmt;

/// As a config file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    pub bucket: String,
    /// Who keeps it, such as `https://minio.example:9000`; none: Amazon.
    pub endpoint: Option<String>,
    /// Its region; none: `us-east-1`, which most that aren't Amazon take.
    pub region: Option<String>,
    /// Whether the bucket's name is part of the path, not of the host; none: where an endpoint is named, or the name has a dot.
    pub path_style: Option<bool>,
}

/// A bucket that can be asked.
#[derive(Clone, PartialEq, Eq)]
pub struct Bucket {
    pub(crate) is_tls: bool,
    /// As the header `Host` has it: with its port where that isn't the scheme's.
    pub(crate) host: String,
    /// What comes before a key in the path, encoded; ends with `/`.
    pub(crate) path: String,
    pub(crate) region: String,
    /// What comes before `incoming/` in keys; empty, or ends with `/`.
    pub(crate) prefix: String,
    shown: String,
}

/// Where nobody says.
const REGION: &str = "us-east-1";

impl Bucket {
    /// Errors: every fault, each begins with its key.
    pub fn new(settings: &Settings) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let (name, prefix) = name_and_prefix(&settings.bucket).unwrap_or_else(|fault| {
            faults.push(format!("bucket: {:?} {fault}", settings.bucket));
            (String::new(), String::new())
        });
        let region = settings.region.clone().unwrap_or_else(|| REGION.to_owned());
        if region.is_empty() || !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            faults.push(format!("region: {region:?} is no region such as eu-central-1"));
        }
        let amazon = format!("https://s3.{region}.amazonaws.com");
        let endpoint = match settings.endpoint.as_deref().map(parse_endpoint) {
            None if faults.is_empty() => parse_endpoint(&amazon).ok(),
            None => None,
            Some(parsed) => parsed
                .map_err(|fault| {
                    let endpoint = settings.endpoint.as_deref().unwrap_or_default();
                    // What may hold a password isn't repeated.
                    let shown = if endpoint.contains('@') { "…" } else { endpoint };
                    faults.push(format!("endpoint: {shown:?} {fault}"));
                })
                .ok(),
        };
        let Some(endpoint) = endpoint.filter(|_| faults.is_empty()) else { return Err(faults) };
        let is_path_style = settings.path_style.unwrap_or(settings.endpoint.is_some() || name.contains('.'));
        let (host, path) = if is_path_style {
            (endpoint.host, format!("{}{name}/", endpoint.path))
        } else {
            (format!("{name}.{}", endpoint.host).to_ascii_lowercase(), endpoint.path)
        };
        let shown = match &settings.endpoint {
            None => settings.bucket.trim_end_matches('/').to_owned(),
            Some(at) => format!("{} at {at}", settings.bucket.trim_end_matches('/')),
        };
        Ok(Self { is_tls: endpoint.is_tls, host, path, region, prefix, shown })
    }

    /// Whether it is asked over TLS. If not, it is on this machine.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Whether it is asked on this machine, which is no matter of proxies.
    pub fn is_on_this_machine(&self) -> bool {
        is_this_machine(host_alone(&self.host))
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({self})")
    }
}

/// The bucket's name, and its prefix with a slash at its end.
fn name_and_prefix(text: &str) -> Result<(String, String), &'static str> {
    let rest = text.strip_prefix("s3://").ok_or("is no bucket such as s3://pool/cardhour")?;
    let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_name || name.is_empty() || name.starts_with('.') || name.len() > 63 {
        return Err("has a name that no bucket has");
    }
    let prefix = prefix.trim_end_matches('/');
    if prefix.is_empty() {
        return Ok((name.to_owned(), String::new()));
    }
    if prefix.split('/').any(|part| matches!(part, "" | "." | "..")) || prefix.contains(char::is_control) {
        return Err("has a prefix with an empty part, a dot for a part, or a control character");
    }
    Ok((name.to_owned(), format!("{prefix}/")))
}

struct Endpoint {
    is_tls: bool,
    host: String,
    path: String,
}

fn parse_endpoint(text: &str) -> Result<Endpoint, &'static str> {
    let (is_tls, rest) = match text.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        _ => return Err("begins with neither https:// nor http://"),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains('@') {
        return Err("has a name or password, which doesn't belong here: take credentials_file");
    }
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if host_alone(authority).is_empty() || !authority.bytes().all(is_host) {
        return Err("has no host");
    }
    if !path.bytes().all(is_path) || path.split('/').any(|part| matches!(part, "." | "..")) {
        return Err("has more than an address");
    }
    if !is_tls && !is_this_machine(host_alone(authority)) {
        return Err(
            "has no TLS: without it only this machine is asked, since anybody on the way could read and change what goes by: use https",
        );
    }
    // Whoever sends leaves out the port that the scheme says, so it isn't signed either.
    let usual = if is_tls { ":443" } else { ":80" };
    let host = authority.strip_suffix(usual).unwrap_or(authority).to_ascii_lowercase();
    let path = path.trim_end_matches('/');
    let path = if path.is_empty() { "/".to_owned() } else { format!("/{path}/") };
    Ok(Endpoint { is_tls, host, path })
}

/// Without its port.
fn host_alone(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.is_empty() => host,
        _ => authority,
    }
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bucket: &str, endpoint: Option<&str>) -> Result<Bucket, Vec<String>> {
        Bucket::new(&Settings { bucket: bucket.into(), endpoint: endpoint.map(Into::into), ..Settings::default() })
    }

    #[test]
    fn a_bucket_of_amazon_is_part_of_the_host_unless_its_name_has_a_dot() {
        let bucket = of("s3://pool/cardhour/", None).unwrap();
        assert_eq!((&*bucket.host, &*bucket.path), ("pool.s3.us-east-1.amazonaws.com", "/"));
        assert_eq!((&*bucket.prefix, bucket.to_string()), ("cardhour/", "s3://pool/cardhour".to_owned()));
        let dotted = of("s3://pool.example", None).unwrap();
        assert_eq!((&*dotted.host, &*dotted.path), ("s3.us-east-1.amazonaws.com", "/pool.example/"));
        assert_eq!(dotted.prefix, "");
    }

    #[test]
    fn a_bucket_of_somebody_else_is_part_of_the_path_unless_told_otherwise() {
        let bucket = of("s3://pool", Some("https://MinIO.example:443/s3/")).unwrap();
        assert_eq!((&*bucket.host, &*bucket.path), ("minio.example", "/s3/pool/"));
        assert!(bucket.is_tls() && !bucket.is_on_this_machine());
        let settings = Settings {
            bucket: "s3://pool".into(),
            endpoint: Some("https://minio.example:9000".into()),
            path_style: Some(false),
            ..Settings::default()
        };
        let bucket = Bucket::new(&settings).unwrap();
        assert_eq!((&*bucket.host, &*bucket.path), ("pool.minio.example:9000", "/"));
    }

    #[test]
    fn without_tls_only_this_machine_is_asked() {
        for here in ["http://127.0.0.1:9000", "http://localhost", "http://[::1]:9000"] {
            let bucket = of("s3://pool", Some(here)).unwrap();
            assert!(bucket.is_on_this_machine() && !bucket.is_tls(), "{here}");
        }
        for elsewhere in ["http://10.0.0.1:9000", "http://localhost.example", "http://minio:9000"] {
            let faults = of("s3://pool", Some(elsewhere)).unwrap_err();
            assert!(faults[0].starts_with("endpoint: ") && faults[0].ends_with("use https"), "{faults:?}");
        }
    }

    #[test]
    fn every_fault_is_told_with_its_key_and_no_password() {
        let settings = Settings {
            bucket: "pool".into(),
            endpoint: Some("https://me:secret@minio".into()),
            region: Some("a/b".into()),
            path_style: None,
        };
        let faults = Bucket::new(&settings).unwrap_err();
        assert_eq!(
            faults,
            [
                "bucket: \"pool\" is no bucket such as s3://pool/cardhour",
                "region: \"a/b\" is no region such as eu-central-1",
                "endpoint: \"…\" has a name or password, which doesn't belong here: take credentials_file",
            ]
        );
        for odd in ["s3://", "s3:///x", "s3://a b", "s3://pool//x", "s3://pool/../x", "s3://..", "s3://pool/a\nb"] {
            assert!(of(odd, None).is_err(), "{odd}");
        }
        for odd in ["ftp://x", "https://", "https://h?x", "https://h/a?b", "https://h/../x", "minio:9000"] {
            assert!(of("s3://pool", Some(odd)).is_err(), "{odd}");
        }
    }
}
