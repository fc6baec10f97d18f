//! Compiles the kubelet's interface, without a `protoc` on the machine.
//!
//! The client goes into the library. The server is for the tests alone, which play a kubelet: it lies in a folder of its own, and the library
//! never sees it.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proto = "proto/pod_resources.proto";
    println!("cargo::rerun-if-changed={proto}");
    let files = protox::compile([proto], ["proto"])?;

    let client = tonic_prost_build::configure().build_transport(false);
    client.build_server(false).emit_rerun_if_changed(false).compile_fds(files.clone())?;

    let tests = PathBuf::from(std::env::var("OUT_DIR")?).join("kubelet");
    std::fs::create_dir_all(&tests)?;
    let server = tonic_prost_build::configure().build_transport(false).build_client(false);
    server.emit_rerun_if_changed(false).out_dir(tests).compile_fds(files)?;
    Ok(())
}
