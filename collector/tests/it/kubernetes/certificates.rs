//! TLS, as a cluster has it: a certificate of its own authority, and a token.

use super::api_server::Server;
use super::node::{Node, api_settings, pod};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate for 127.0.0.1 that speaks for itself; false where there is no openssl to make it.
fn make_certificate(folder: &Path, name: &str) -> bool {
    let (key, certificate) = (folder.join(format!("{name}.key")), folder.join(format!("{name}.crt")));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args([
            "-subj",
            "/CN=kube-apiserver",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=CA:FALSE",
        ])
        .arg("-keyout")
        .arg(key)
        .arg("-out")
        .arg(certificate)
        .output();
    made.is_ok_and(|made| made.status.success())
}

#[test]
fn a_server_is_believed_by_its_clusters_certificates_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    if !make_certificate(folder.path(), "own") || !make_certificate(folder.path(), "other") {
        assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "no openssl");
        let _ = writeln!(
            std::io::stderr(),
            "skipped: a_server_is_believed_by_its_clusters_certificates_alone needs openssl"
        );
        return;
    }
    let certificate = CertificateDer::from_pem_file(path("own.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(path("own.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let mut node = Node::new(Some(Server::start_with(Some(TlsAcceptor::from(Arc::new(config))))), |_| {});
    node.store(|store| store.put(pod("a/p", "u-1", "Running")));

    let cases = [("own.crt", 1, 0), ("other.crt", 0, 1), ("missing.crt", 0, 1), ("own.key", 0, 1)];
    for (ca_file, pods, findings) in cases {
        let mut api = api_settings(node.server.as_ref().unwrap());
        api.address.ca_file = Some(path(ca_file));
        node.restart_collector(|settings| settings.api = Some(api));
        let look = node.look();
        assert_eq!((look.pods.len(), look.findings.len()), (pods, findings), "{ca_file}: {:?}", look.findings);
    }
}
