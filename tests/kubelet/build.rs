//! Compiles the server's side of the kubelet's interface from the collector's own file, without a `protoc` on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = "../../collector/proto";
    let proto = format!("{folder}/pod_resources.proto");
    println!("cargo::rerun-if-changed={proto}");
    let server = tonic_prost_build::configure().build_transport(false).build_client(false);
    server.emit_rerun_if_changed(false).compile_fds(protox::compile([proto], [folder])?)?;
    Ok(())
}
