//! Where to ask on a Kubernetes node.

use super::api_server::{ApiAddress, ApiSettings};
use super::attribution::Sharing;
use super::kubelet_list::PodName;
use cardhour_domain::Name;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a pod finds what its service account is known by.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Where to ask on a Kubernetes node, and by which rules.
#[derive(Clone, Debug)]
pub struct KubernetesSettings {
    /// The cluster, as the books name it.
    pub cluster: Name,
    /// The node, as the API server names it.
    pub node: Name,
    /// The collector's own pod, which is never a holder.
    pub own_pod: Option<PodName>,
    /// The kubelet's socket.
    pub socket: PathBuf,
    /// How long the kubelet may take.
    pub socket_timeout: Duration,
    /// The API server; none where the collector may not ask it.
    pub api: Option<ApiSettings>,
    /// Where the kubelet keeps logs of pods: `/var/log/pods`; none where that isn't mounted.
    pub log_folder: Option<PathBuf>,
    /// How the site gives devices out.
    pub sharing: Sharing,
    /// Over how many looks in a row what the kubelet said is carried, where it can't be asked and nothing says that a pod has changed.
    pub carried_looks: u32,
}

impl KubernetesSettings {
    /// The settings that fit a node as Kubernetes is installed, with nothing but the kubelet's socket.
    pub fn new(cluster: Name, node: Name) -> Self {
        Self {
            cluster,
            node,
            own_pod: None,
            socket: "/var/lib/kubelet/pod-resources/kubelet.sock".into(),
            socket_timeout: Duration::from_secs(3),
            api: None,
            log_folder: None,
            sharing: Sharing::default(),
            carried_looks: 3,
        }
    }
    /// As a pod of a DaemonSet finds it, from its environment: `NODE_NAME`, `POD_NAMESPACE` and `POD_NAME` by the downward API,
    /// `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` by the kubelet. None where there is no `NODE_NAME`.
    pub fn of_pod(cluster: Name, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let value = |name: &str| variable(name).filter(|value| !value.is_empty());
        let address = || {
            let port = value("KUBERNETES_SERVICE_PORT")?.parse().ok()?;
            Some(ApiAddress::of_pod(&value("KUBERNETES_SERVICE_HOST")?, port, Path::new(SERVICE_ACCOUNT)))
        };
        let own_pod = value("POD_NAMESPACE").zip(value("POD_NAME"));
        Some(Self {
            own_pod: own_pod.map(|(namespace, name)| PodName::new(namespace, name)),
            api: address().map(ApiSettings::new),
            log_folder: Some("/var/log/pods".into()),
            ..Self::new(cluster, value("NODE_NAME")?.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pods_environment_says_where_to_ask() {
        let of = |pairs: &[(&str, &str)]| {
            let find = |name: &str| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
            KubernetesSettings::of_pod("c1".into(), find)
        };
        assert!(of(&[("KUBERNETES_SERVICE_HOST", "10.0.0.1")]).is_none());
        let alone = of(&[("NODE_NAME", "n1"), ("POD_NAME", "")]).unwrap();
        assert_eq!((&*alone.node, alone.own_pod, alone.api), ("n1", None, None));
        let server = [("KUBERNETES_SERVICE_HOST", "fd00::1"), ("KUBERNETES_SERVICE_PORT", "443")];
        let pod = [("NODE_NAME", "n1"), ("POD_NAMESPACE", "cardhour"), ("POD_NAME", "collector-x")];
        let settings = of(&[server, [pod[0], pod[1]], [pod[2], pod[2]]].concat()).unwrap();
        assert_eq!(settings.own_pod, Some(PodName::new("cardhour", "collector-x")));
        let address = settings.api.unwrap().address;
        assert_eq!((&*address.host, address.port), ("fd00::1", 443));
        assert_eq!(address.token_file, Some("/var/run/secrets/kubernetes.io/serviceaccount/token".into()));
    }
}
