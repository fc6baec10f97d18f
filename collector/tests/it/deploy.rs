//! What is shipped to install it with: units, the manifest, the images.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Values of a key of a unit, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

/// A number in the manifest's block that begins with `name:`.
fn number(manifest: &str, name: &str, key: &str) -> u64 {
    let (_, block) = manifest.split_once(&format!("{name}:\n")).unwrap_or_else(|| panic!("{name}"));
    let line = block.lines().find_map(|line| line.trim().strip_prefix(&format!("{key}: ")));
    line.unwrap_or_else(|| panic!("{name}.{key}")).parse().unwrap()
}

#[test]
fn the_kubelet_gives_a_hung_collector_time_to_end_itself() {
    let manifest = read("deploy/kubernetes/collector.yaml");
    // The watchdog's and the page's own times, as docs/metrics.md says them.
    let (watchdog_s, not_fresh_after_s) = (30, 45);
    let docs = read("docs/metrics.md");
    assert!(docs.contains("after 30 s the collector ends") && docs.contains("none has come for three steps"));
    for probe in ["livenessProbe", "readinessProbe"] {
        let (_, block) = manifest.split_once(&format!("          {probe}:\n")).unwrap();
        assert!(block.starts_with("            httpGet:\n              path: /health\n              port: metrics\n"));
    }
    assert!(manifest.contains("- name: metrics\n              containerPort: 9401\n"), "the port that is probed");
    assert!(manifest.contains("metrics = \"0.0.0.0:9401\""), "the port that is served");
    let of = |key| number(&manifest, "livenessProbe", key);
    let between_failures_s = of("periodSeconds") * (of("failureThreshold") - 1);
    // Where the page answers, and where it doesn't at all.
    assert!(not_fresh_after_s + between_failures_s > 2 * watchdog_s && between_failures_s > watchdog_s);
}

#[test]
fn the_manifest_and_the_unit_say_what_profiling_needs() {
    let manifest = read("deploy/kubernetes/collector.yaml");
    let lines: Vec<&str> = manifest.lines().map(str::trim).collect();
    assert!(lines.contains(&"add: [\"SYS_PTRACE\"]") && lines.contains(&"allowPrivilegeEscalation: false"));
    assert!(manifest.contains("add: [\"SYS_PTRACE\", \"SYS_ADMIN\"]"), "as a comment");
    let profiling = read("deploy/systemd/profiling.conf");
    for key in ["CapabilityBoundingSet", "AmbientCapabilities"] {
        // A right that stands in one of the two lists alone isn't had.
        assert_eq!(values(&profiling, key), ["CAP_SYS_ADMIN"]);
        // systemd adds lists up, but for an empty line, which takes away what was before it: `up.conf` is read after `profiling.conf`.
        for other in ["cardhour-collector.service", "up.conf"] {
            let rights = values(&read(&format!("deploy/systemd/{other}")), key).join("|");
            assert_eq!(rights, "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE", "{other}");
        }
    }
}

#[test]
fn what_the_units_name_is_installed_by_the_steps() {
    let steps = read("deploy/README.md");
    for unit in ["cardhour-collector.service", "cardhour.service"] {
        let text = read(&format!("deploy/systemd/{unit}"));
        assert!(steps.contains(&format!("install -m 0644 deploy/systemd/{unit} /etc/systemd/system/\n")));
        for command in values(&text, "ExecStart") {
            let binary = command.split(' ').next().unwrap();
            assert!(steps.contains(&format!(" {binary}\n")), "{binary}");
        }
        let documents = values(&text, "Documentation").join(" ");
        assert!(!documents.is_empty());
        for document in documents.split(' ') {
            let document = document.strip_prefix("file:/usr/share/doc/cardhour/").unwrap();
            assert!(root().join(document).is_file(), "{document}");
            let (folder, file) = document.rsplit_once('/').unwrap_or(("", document));
            let step = match folder {
                "" => format!("install -D -m 0644 -t /usr/share/doc/cardhour {file}\n"),
                folder => format!("install -D -m 0644 -t /usr/share/doc/cardhour/{folder} {folder}/*.md\n"),
            };
            assert!(steps.contains(&step), "{step}");
        }
    }
    for drop_in in std::fs::read_dir(root().join("deploy/systemd")).unwrap() {
        let name = drop_in.unwrap().file_name().into_string().unwrap();
        assert!(steps.contains(&format!("systemd/{name}")), "{name}");
    }
}

#[test]
fn the_image_of_the_manifest_is_one_that_can_be_built() {
    let (manifest, images) = (read("deploy/kubernetes/collector.yaml"), read("deploy/Dockerfile"));
    let image = manifest.lines().find_map(|line| line.trim().strip_prefix("image: ")).unwrap();
    let command = format!(
        "docker build -f deploy/Dockerfile --target collector --build-arg CARDHOUR_COMMIT=$(git rev-parse --short=12 HEAD) -t {image} .\n"
    );
    assert!(images.contains(&command) && read("deploy/README.md").contains(&command));
    assert!(image.ends_with(&format!(":{}", env!("CARGO_PKG_VERSION"))), "{image}");
    // The oldest compiler that will do is what it is built with.
    let rust = read("Cargo.toml")
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"').map(str::to_owned));
    assert!(
        images.contains(&format!("FROM rust:{}-bookworm AS source\n", rust.unwrap()))
            && images.contains("FROM debian:bookworm-slim AS base\n")
    );
    // What the manifest runs, and the folder that the config's spool is in.
    assert!(manifest.contains("command: [\"cardhour-collector\"]") && images.contains("/usr/bin/cardhour-collector\n"));
    assert!(
        images.contains(" /var/lib/cardhour-collector\n")
            && manifest.contains("spool = \"/var/lib/cardhour-collector\"")
    );
}
