//! The collector's config: one file, read once, every fault of it told at once.
//!
//! Each key has a default but `cluster` and where to deliver. What each does is said in `deploy/collector.toml`, which a test reads.

use crate::delivery::Destination;
use crate::holders::kubernetes::{KubernetesSettings, ResourceNames};
use crate::holders::{ControllerSettings, MapNumbers, SlurmSettings};
use crate::metrics::DcgmNames;
use crate::owners::Rules;
use cardhour_bucket::{Bucket, CredentialsSource, Settings};
use cardhour_domain::Name;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What is in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cluster's name, as accounting and the file of nodes have it.
    pub cluster: Name,
    /// This node's name, as they have it.
    pub node: Name,
    /// The driver's library, where it isn't where the loader finds it.
    pub nvml_library: Option<PathBuf>,
    /// Where rows lie until the ledger has them.
    pub spool: PathBuf,
    /// How large that may become. Unit: bytes.
    pub spool_bytes: u64,
    /// How old a segment may become before it is sealed. Unit: seconds.
    pub seal_after_s: u32,
    /// The step of ticks. Unit: seconds.
    pub step_s: u32,
    /// Where `/metrics` is served; none: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The names of DCGM's exporter, where they are wanted beside our own.
    pub dcgm_names: Option<DcgmNames>,
    /// Where segments go.
    pub deliver: Destination,
    /// Slurm, where it is on this node.
    pub slurm: Option<SlurmSettings>,
    /// Kubernetes, where it is on this node.
    pub kubernetes: Option<KubernetesSettings>,
    /// Who pays.
    pub rules: Rules,
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
    /// Some of it is wrong.
    #[error("config file {} has {} fault(s):\n  {}", path.display(), faults.len(), faults.join("\n  "))]
    Faults {
        /// Which.
        path: PathBuf,
        /// Every one, each with its key path.
        faults: Vec<String>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cluster: String,
    node: Option<String>,
    nvml_library: Option<PathBuf>,
    #[serde(default = "spool")]
    spool: PathBuf,
    #[serde(default = "spool_mib")]
    spool_mib: u64,
    #[serde(default = "seal_after_s")]
    seal_after_s: u32,
    #[serde(default = "step_s")]
    step_s: u32,
    #[serde(default = "metrics")]
    metrics: String,
    #[serde(default)]
    dcgm_names: bool,
    #[serde(default)]
    dcgm_once: bool,
    #[serde(default)]
    dcgm_small_hostname: bool,
    #[serde(default)]
    dcgm_virtual_gpus: bool,
    deliver: Deliver,
    slurm: Option<Slurm>,
    kubernetes: Option<Kubernetes>,
    /// Read by [`Rules::from_table`].
    #[allow(dead_code, reason = "named here so that it isn't refused")]
    owners: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deliver {
    service: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    folder: Option<PathBuf>,
    bucket: Option<String>,
    endpoint: Option<String>,
    region: Option<String>,
    path_style: Option<bool>,
    credentials_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Slurm {
    /// One `slurmd` a name.
    #[serde(default)]
    nodes: Vec<String>,
    #[serde(default = "gres_conf")]
    gres_conf: PathBuf,
    map_folder: Option<PathBuf>,
    #[serde(default)]
    map_numbers: Numbers,
    #[serde(default = "yes")]
    ask_controller: bool,
    slurm_conf: Option<PathBuf>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Numbers {
    #[default]
    Slurm,
    Driver,
    Minor,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kubernetes {
    socket: Option<PathBuf>,
    log_folder: Option<PathBuf>,
    /// Names of resources whose devices are cards.
    resources: Option<Vec<String>>,
    /// Replicas of a resource's devices.
    #[serde(default)]
    replicas: BTreeMap<String, u32>,
    #[serde(default)]
    vgpu_annotations: Vec<String>,
    reservation_namespaces: Option<Vec<String>>,
}

fn spool() -> PathBuf {
    "/var/lib/cardhour-collector".into()
}
fn spool_mib() -> u64 {
    1024
}
fn seal_after_s() -> u32 {
    900
}
fn step_s() -> u32 {
    15
}
fn metrics() -> String {
    "127.0.0.1:9401".to_owned()
}
fn gres_conf() -> PathBuf {
    "/etc/slurm/gres.conf".into()
}
fn yes() -> bool {
    true
}

impl Config {
    /// Of a machine by itself, which names no scheduler, a minute behind the cards. Where its spool is and where it delivers to is for the caller to say.
    pub fn of_machine(cluster: Name, node: Name) -> Self {
        Self {
            cluster,
            node,
            nvml_library: None,
            spool: PathBuf::new(),
            spool_bytes: spool_mib() << 20,
            seal_after_s: 60,
            step_s: step_s(),
            metrics: metrics_address(&metrics()).expect("an address or off"),
            dcgm_names: None,
            deliver: Destination::Folder(PathBuf::new()),
            slurm: None,
            kubernetes: None,
            rules: Rules::default(),
        }
    }

    /// Reads a file. `host` is this node's name where the file gives none. Errors: it can't be read, and every fault in it.
    pub fn load(path: &Path, host: &str) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, host).map_err(|faults| ConfigError::Faults { path: path.to_owned(), faults })
    }

    /// Reads a text. Errors: every fault in it, each with its key path.
    pub fn parse(text: &str, host: &str) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| vec![told(&error)])?;
        let rules = match table.get("owners") {
            None => Rules::default(),
            Some(toml::Value::Table(owners)) => Rules::from_table(owners).unwrap_or_else(|of_owners| {
                faults.extend(of_owners.iter().map(ToString::to_string));
                Rules::default()
            }),
            Some(other) => {
                faults.push(format!("owners: not a section [owners] but {}", other.type_str()));
                Rules::default()
            }
        };
        // From the text again, not from the table: so that a fault has its line.
        let file: File = match toml::from_str(text) {
            Ok(file) => file,
            Err(error) => {
                faults.push(told(&error));
                return Err(faults);
            }
        };
        let node = file.node.unwrap_or_else(|| host.to_owned());
        if file.cluster.is_empty() || node.is_empty() {
            faults.push("cluster, node: empty".to_owned());
        }
        if let Err(fault) = check_step(file.step_s) {
            faults.push(format!("step_s: {fault}"));
        }
        if !(1..=86_400).contains(&file.seal_after_s) {
            faults.push(format!("seal_after_s: {} is not from 1 to a day", file.seal_after_s));
        }
        if file.spool_mib < 16 {
            faults.push(format!("spool_mib: {} is less than 16", file.spool_mib));
        }
        let metrics = metrics_address(&file.metrics).unwrap_or_else(|fault| {
            faults.push(format!("metrics: {fault}"));
            None
        });
        let (once, small_hostname) = (file.dcgm_once, file.dcgm_small_hostname);
        let virtual_gpus = file.dcgm_virtual_gpus;
        if !file.dcgm_names && (once || small_hostname || virtual_gpus) {
            faults.push(
                "dcgm_once, dcgm_small_hostname, dcgm_virtual_gpus: without dcgm_names = true they say nothing"
                    .to_owned(),
            );
        }
        if let Some(kubernetes) = &file.kubernetes {
            kubernetes.check(&mut faults);
        }
        let deliver = destination(file.deliver, &mut faults);
        let (cluster, node): (Name, Name) = (file.cluster.into(), node.into());
        match deliver {
            Some(deliver) if faults.is_empty() => Ok(Self {
                nvml_library: file.nvml_library,
                spool: file.spool,
                spool_bytes: file.spool_mib << 20,
                seal_after_s: file.seal_after_s,
                step_s: file.step_s,
                metrics,
                dcgm_names: file.dcgm_names.then_some(DcgmNames { once, small_hostname, virtual_gpus }),
                deliver,
                slurm: file.slurm.map(|slurm| slurm.settings(&node)),
                kubernetes: file.kubernetes.map(|kubernetes| kubernetes.settings(&cluster, &node)),
                rules,
                cluster,
                node,
            }),
            _ => Err(faults),
        }
    }
}

/// A fault of TOML, indented as a part of the message that tells of all faults.
fn told(error: &toml::de::Error) -> String {
    error.to_string().trim_end().replace('\n', "\n  ")
}

/// This node's name where its config gives none: `NODE_NAME`, which the manifest of Kubernetes sets, for in a pod the host's name is the pod's; else
/// the host's.
pub fn host_name(variable: impl Fn(&str) -> Option<String>) -> String {
    variable("NODE_NAME").filter(|name| !name.is_empty()).unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        host.trim().to_owned()
    })
}

/// Errors: a step of so many seconds doesn't fit the books' quarter hours.
pub fn check_step(step_s: u32) -> Result<(), String> {
    if (1..=60).contains(&step_s) && 900 % step_s == 0 {
        return Ok(());
    }
    Err(format!("{step_s} is not from 1 to 60 and a part of a quarter hour"))
}

/// Where metrics are to be served: `off` is nowhere. Errors: it is neither that nor an address with a port.
pub fn metrics_address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "off" {
        return Ok(None);
    }
    let address: Result<SocketAddr, _> = text.parse();
    address
        .map(Some)
        .map_err(|_| format!("{text:?} is neither off nor an address and port, such as 127.0.0.1:9401 or [::]:9401"))
}

fn destination(deliver: Deliver, faults: &mut Vec<String>) -> Option<Destination> {
    let of_bucket = deliver.bucket.is_some()
        || deliver.endpoint.is_some()
        || deliver.region.is_some()
        || deliver.path_style.is_some()
        || deliver.credentials_file.is_some();
    match deliver {
        Deliver { service: Some(url), token_file: Some(token_file), ca_file, folder: None, .. } if !of_bucket => {
            Some(Destination::Service { url, token_file, ca_file })
        }
        Deliver { service: None, token_file: None, ca_file: None, folder: Some(folder), .. } if !of_bucket => {
            Some(Destination::Folder(folder))
        }
        Deliver {
            service: None,
            token_file: None,
            folder: None,
            bucket: Some(bucket),
            endpoint,
            region,
            path_style,
            credentials_file,
            ca_file,
        } => match Bucket::new(&Settings { bucket, endpoint, region, path_style }) {
            Ok(bucket) => {
                let credentials = CredentialsSource { file: credentials_file };
                Some(Destination::Bucket { bucket, credentials, ca_file })
            }
            Err(of_bucket) => {
                faults.extend(of_bucket.iter().map(|fault| format!("deliver.{fault}")));
                None
            }
        },
        _ => {
            let forms = "either service and token_file (and ca_file), or folder, or bucket (and endpoint, region, path_style, credentials_file, ca_file)";
            faults.push(format!("deliver: {forms}"));
            None
        }
    }
}

impl Slurm {
    fn settings(self, node: &Name) -> SlurmSettings {
        let nodes = self.nodes.into_iter().map(Name::from).collect::<Vec<_>>();
        let slurm_conf = self.slurm_conf;
        SlurmSettings {
            nodes: if nodes.is_empty() { vec![node.clone()] } else { nodes },
            gres_conf: self.gres_conf,
            map_folder: self.map_folder,
            map_numbers: match self.map_numbers {
                Numbers::Slurm => MapNumbers::Slurm,
                Numbers::Driver => MapNumbers::Driver,
                Numbers::Minor => MapNumbers::Minor,
            },
            controller: self.ask_controller.then(|| ControllerSettings { slurm_conf, ..ControllerSettings::default() }),
        }
    }
}

impl Kubernetes {
    fn check(&self, faults: &mut Vec<String>) {
        if self.resources.as_ref().is_some_and(|names| names.is_empty() || names.iter().any(String::is_empty)) {
            faults.push(
                "kubernetes.resources: names of resources, such as nvidia.com/gpu or nvidia.com/mig-*".to_owned(),
            );
        }
        for (resource, replicas) in &self.replicas {
            if *replicas == 0 {
                faults.push(format!("kubernetes.replicas.{resource:?}: a device has at least one"));
            }
        }
        if self.vgpu_annotations.iter().any(String::is_empty) {
            faults.push("kubernetes.vgpu_annotations: an annotation has a name".to_owned());
        }
    }

    fn settings(self, cluster: &Name, node: &Name) -> KubernetesSettings {
        // In a pod of its own the downward API says who it is, and the service account lets it ask the API server.
        let in_pod = KubernetesSettings::of_pod(cluster.clone(), |variable| std::env::var(variable).ok());
        let mut settings = in_pod.unwrap_or_else(|| KubernetesSettings::new(cluster.clone(), node.clone()));
        if let Some(socket) = self.socket {
            settings.socket = socket;
        }
        settings.log_folder = self.log_folder.or(settings.log_folder);
        let names = |texts: Vec<String>| texts.into_iter().map(Name::from);
        let sharing = &mut settings.sharing;
        if let Some(resources) = self.resources {
            sharing.resources = ResourceNames::new(resources);
        }
        sharing.replicas = self.replicas.into_iter().map(|(resource, count)| (resource.into(), count)).collect();
        sharing.vgpu_annotations = names(self.vgpu_annotations).collect();
        if let Some(namespaces) = self.reservation_namespaces {
            sharing.reservation_namespaces = names(namespaces).collect();
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_can_be_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/collector.toml");
        let config = Config::load(&path, "gpu01").unwrap();
        assert_eq!((config.step_s, config.seal_after_s, config.spool_bytes), (15, 900, 1 << 30));
        assert_eq!(&*config.node, "gpu01");
        assert_eq!((config.metrics, config.dcgm_names), (Some(SocketAddr::from(([127, 0, 0, 1], 9401))), None));
        assert!(config.slurm.is_some() && config.kubernetes.is_none());
    }

    /// The keys that a section may have, as its own refusal of another lists them.
    fn keys(section: &str) -> Vec<String> {
        let before = "cluster = \"lab\"\n[deliver]\nfolder = \"/x\"\n";
        let text = match section {
            "" => format!("no_such_key = 1\n{before}"),
            "deliver" => format!("{before}no_such_key = 1\n"),
            other => format!("{before}[{other}]\nno_such_key = 1\n"),
        };
        let faults = Config::parse(&text, "n1").unwrap_err().join(" ");
        let (_, listed) = faults.split_once("expected one of").expect("what there is is listed");
        listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_example_has_every_key() {
        let example =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/collector.toml")).unwrap();
        for section in ["", "deliver", "slurm", "kubernetes"] {
            let keys = keys(section);
            assert!(keys.len() >= 6, "{section} {keys:?}");
            for key in keys {
                let is_there = example.lines().any(|line| {
                    let line = line.trim_start_matches("# ").trim_start();
                    line.starts_with(&format!("{key} = ")) || line.starts_with(&format!("[{key}]"))
                });
                assert!(is_there, "{section}.{key}");
            }
        }
    }

    /// What the manifest of Kubernetes gives a node: without a name of its own, on the folders that the pod mounts.
    #[test]
    fn the_config_of_the_manifest_can_be_read() {
        let manifest =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes/collector.yaml"))
                .unwrap();
        let (_, text) = manifest.split_once("  collector.toml: |\n").unwrap();
        let (text, _) = text.split_once("\n---").unwrap();
        let text: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
        let config = Config::parse(&text, "gpu01").unwrap();
        assert_eq!((&*config.node, config.kubernetes.is_some()), ("gpu01", true));
        let Destination::Service { token_file, .. } = &config.deliver else { panic!("{:?}", config.deliver) };
        for mounted in [config.spool.as_path(), token_file.parent().unwrap()] {
            assert!(manifest.contains(&format!("mountPath: {}\n", mounted.display())), "{}", mounted.display());
        }
        assert!(manifest.contains("name: NODE_NAME"));
    }

    #[test]
    fn how_a_cluster_gives_devices_out_is_the_sites_to_say() {
        let of = |section: &str| {
            Config::parse(&format!("cluster = \"lab\"\n[deliver]\nfolder = \"/x\"\n[kubernetes]\n{section}"), "n1")
        };
        let sharing = |section: &str| of(section).unwrap().kubernetes.unwrap().sharing;
        let usual = sharing("");
        assert!(
            usual.resources.has("nvidia.com/gpu") && usual.replicas.is_empty() && usual.vgpu_annotations.is_empty()
        );
        assert!(usual.reservation_namespaces.contains("kai-resource-reservation"));
        let own = sharing(
            "resources = [\"nvidia.com/gpu-a100\", \"nvidia.com/mig-*\"]\nreplicas = { \"nvidia.com/gpu-a100\" = 4 }\n\
             vgpu_annotations = [\"hami.io/vgpu-devices-allocated\"]\nreservation_namespaces = [\"shared\"]\n",
        );
        assert!(own.resources.has("nvidia.com/gpu-a100") && !own.resources.has("nvidia.com/gpu"));
        assert_eq!(own.replicas.get("nvidia.com/gpu-a100"), Some(&4));
        assert_eq!(own.vgpu_annotations, [Name::from("hami.io/vgpu-devices-allocated")]);
        assert_eq!(own.reservation_namespaces, [Name::from("shared")].into());
        let faults = of("resources = []\nreplicas = { \"x\" = 0 }\nvgpu_annotations = [\"\"]\n").unwrap_err();
        assert_eq!(faults.len(), 3, "{faults:?}");
    }

    #[test]
    fn in_a_pod_the_node_is_named_by_the_manifest() {
        let name = |value: &str| host_name(|variable| (variable == "NODE_NAME").then(|| value.to_owned()));
        assert_eq!(name("gpu01"), "gpu01");
        assert!(!name("").is_empty(), "the host's name");
    }

    #[test]
    fn a_bucket_is_named_with_where_it_is_and_who_asks_it() {
        let of = |deliver: &str| Config::parse(&format!("cluster = \"lab\"\n[deliver]\n{deliver}"), "n1");
        let deliver = of("bucket = \"s3://pool/lab\"\nendpoint = \"https://minio.example\"\nregion = \"lab-1\"\ncredentials_file = \"/x\"\n").unwrap().deliver;
        let Destination::Bucket { bucket, credentials, ca_file: None } = deliver else { panic!("{deliver:?}") };
        assert_eq!(bucket.to_string(), "s3://pool/lab at https://minio.example");
        assert_eq!(credentials.file, Some("/x".into()));
        assert!(of("bucket = \"s3://pool\"\n").is_ok());
        for (odd, part) in [
            ("bucket = \"pool\"\nregion = \"\"\n", "deliver.bucket: \"pool\" is no bucket"),
            ("bucket = \"s3://pool\"\nendpoint = \"http://minio\"\n", "use https"),
            ("bucket = \"s3://pool\"\nfolder = \"/x\"\n", "deliver: either"),
            ("folder = \"/x\"\nregion = \"x\"\n", "deliver: either"),
            ("endpoint = \"https://minio\"\n", "deliver: either"),
        ] {
            let faults = of(odd).unwrap_err();
            assert!(faults[0].contains(part), "{faults:?}");
        }
    }

    #[test]
    fn a_fault_of_a_key_has_its_line() {
        for (text, line, says) in [
            ("cluster = \"lab\"\ncolour = 1\n[deliver]\nfolder = \"/x\"\n", 2, "unknown field `colour`"),
            ("cluster = \"lab\"\n[deliver]\nfolder = \"/x\"\n[slurm]\nask_controller = 1\n", 5, "expected a boolean"),
            ("cluster = \"lab\n", 1, "invalid basic string"),
        ] {
            let faults = Config::parse(text, "n1").unwrap_err();
            assert!(faults[0].contains(&format!("line {line},")) && faults[0].contains(says), "{faults:?}");
        }
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let text = "cluster = \"\"\nmetrics = \"localhost\"\ndcgm_once = true\nstep_s = 7\nspool_mib = 1\n[deliver]\nfolder = \"/x\"\nservice = \"https://y\"\n[owners]\ncolour = 1\n";
        let faults = Config::parse(text, "n1").unwrap_err();
        for part in
            ["owners.colour", "cluster", "metrics: \"localhost\"", "dcgm_once", "step_s", "spool_mib", "deliver"]
        {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
        }
    }
}
