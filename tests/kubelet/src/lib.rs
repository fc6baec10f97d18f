//! A kubelet for tests, as far as its socket shows one: it speaks the real pod-resources v1 protocol, and says what the test has it say.

/// The protocol's messages and its server.
#[allow(missing_docs, clippy::all, clippy::pedantic, dead_code)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/v1.rs"));
}

use hyper::body::Incoming;
use hyper::http::Request;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tonic::codegen::Service as _;
use tonic::{Response, Status};
use v1::pod_resources_lister_server::{PodResourcesLister, PodResourcesListerServer};

/// What it says.
#[derive(Clone, Debug, Default)]
pub struct Says {
    /// What it gave to whom.
    pub pods: Vec<v1::PodResources>,
    /// What it has to give.
    pub offered: Vec<v1::ContainerDevices>,
    /// How long it takes over an answer.
    pub delay: Duration,
    /// Whether it is so old that it knows no more than `List`.
    pub is_old: bool,
    /// How often it was asked for the list.
    pub lists: usize,
}

/// A kubelet that runs until it is dropped or stopped.
pub struct Kubelet {
    /// Where it is asked.
    pub socket: PathBuf,
    /// What it answers with.
    pub says: Arc<Mutex<Says>>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Kubelet {
    /// Starts one that has nothing and gave nothing, with its socket in a folder.
    pub fn start(folder: &Path) -> Self {
        let socket = folder.join("kubelet.sock");
        let mut kubelet = Self { socket, says: Arc::default(), running: None };
        kubelet.start_anew();
        kubelet
    }

    /// Starts with a socket of its own, as a kubelet does: the file of the last one is taken away.
    pub fn start_anew(&mut self) {
        self.stop();
        let _ = std::fs::remove_file(&self.socket);
        let listener = std::os::unix::net::UnixListener::bind(&self.socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, stopped) = oneshot::channel();
        let says = self.says.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = UnixListener::from_std(listener).unwrap();
                tokio::select! {
                    () = serve(listener, says) => {}
                    _ = stopped => {}
                }
            });
        });
        self.running = Some((stop, thread));
    }

    /// Stops, and breaks off whatever it was answering. The file of its socket stays, as after a crash.
    pub fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            thread.join().unwrap();
        }
    }

    /// Changes what it says.
    pub fn say(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.says.lock().unwrap());
    }

    /// Gives devices to pods, each said as `namespace/pod/container resource id,id …`.
    pub fn give(&self, lines: &[&str]) {
        self.say(|says| says.pods = pods(lines));
    }

    /// Offers ids under a resource.
    pub fn offer(&self, resource: &str, ids: &[String]) {
        let devices = v1::ContainerDevices { resource_name: resource.into(), device_ids: ids.to_vec() };
        self.say(|says| says.offered.push(devices));
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn serve(listener: UnixListener, says: Arc<Mutex<Says>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let server = PodResourcesListerServer::new(Lister(says.clone()));
        let answer = service_fn(move |request: Request<Incoming>| server.clone().call(request));
        tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer));
    }
}

struct Lister(Arc<Mutex<Says>>);

impl Lister {
    async fn says(&self) -> Says {
        let says = self.0.lock().unwrap().clone();
        tokio::time::sleep(says.delay).await;
        says
    }
}

#[tonic::async_trait]
impl PodResourcesLister for Lister {
    async fn list(
        &self,
        _: tonic::Request<v1::ListPodResourcesRequest>,
    ) -> Result<Response<v1::ListPodResourcesResponse>, Status> {
        self.0.lock().unwrap().lists += 1;
        Ok(Response::new(v1::ListPodResourcesResponse { pod_resources: self.says().await.pods }))
    }

    async fn get_allocatable_resources(
        &self,
        _: tonic::Request<v1::AllocatableResourcesRequest>,
    ) -> Result<Response<v1::AllocatableResourcesResponse>, Status> {
        let says = self.says().await;
        if says.is_old {
            return Err(Status::unimplemented("unknown method GetAllocatableResources"));
        }
        Ok(Response::new(v1::AllocatableResourcesResponse { devices: says.offered }))
    }

    async fn get(
        &self,
        _: tonic::Request<v1::GetPodResourcesRequest>,
    ) -> Result<Response<v1::GetPodResourcesResponse>, Status> {
        Err(Status::unimplemented("unknown method Get"))
    }
}

/// Pods in the order in which they are first named. `claim NAME POOL/DEVICE` in place of a resource and ids is a claim of the namespace.
fn pods(lines: &[&str]) -> Vec<v1::PodResources> {
    let mut pods: Vec<v1::PodResources> = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let path: Vec<&str> = words[0].split('/').collect();
        let [namespace, name, container] = path[..] else { panic!("{line}: namespace/pod/container") };
        let at = pods.iter().position(|pod| pod.namespace == namespace && pod.name == name);
        let at = at.unwrap_or_else(|| {
            pods.push(v1::PodResources { name: name.into(), namespace: namespace.into(), containers: vec![] });
            pods.len() - 1
        });
        let mut resources =
            v1::ContainerResources { name: container.into(), devices: vec![], dynamic_resources: vec![] };
        match words[1..] {
            [] => {}
            ["claim", claim, device] => {
                let (pool_name, device_name) = device.split_once('/').unwrap();
                let claimed = v1::ClaimResource {
                    driver_name: "gpu.nvidia.com".into(),
                    pool_name: pool_name.into(),
                    device_name: device_name.into(),
                    share_id: None,
                };
                let (claim_name, claim_namespace) = (claim.into(), namespace.into());
                resources.dynamic_resources =
                    vec![v1::DynamicResource { claim_name, claim_namespace, claim_resources: vec![claimed] }];
            }
            [resource, ids] => {
                let device_ids = ids.split(',').map(str::to_owned).collect();
                resources.devices = vec![v1::ContainerDevices { resource_name: resource.into(), device_ids }];
            }
            _ => panic!("{line}: resource and ids"),
        }
        pods[at].containers.push(resources);
    }
    pods
}
