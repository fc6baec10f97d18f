//! Compiles the client's side of the kubelet's interface, without a `protoc` on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proto = "proto/pod_resources.proto";
    println!("cargo::rerun-if-changed={proto}");
    let client = tonic_prost_build::configure().build_transport(false).build_server(false);
    client.emit_rerun_if_changed(false).compile_fds(protox::compile([proto], ["proto"])?)?;
    Ok(())
}
