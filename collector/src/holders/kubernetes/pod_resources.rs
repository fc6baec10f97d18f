//! The kubelet's list, over its socket.

use super::kubelet_list::{PluginDevice, PodGrant};
use super::wire::{self, AllocatableResourcesRequest, ListPodResourcesRequest, PodResourcesListerClient};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::http::{Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tonic::body::Body;
use tonic::codegen::Service;

/// The longest list that is taken. Unit: bytes. What the kubelet's own clients allow.
const LONGEST_LIST: usize = 16 << 20;

/// Asks the kubelet of this node which pod was given what.
///
/// It blocks, for at most its timeout. Each call makes a connection of its own: a kubelet that starts anew makes its socket anew, and there is
/// nothing left here of the old one. The runtime inside has no thread; it runs while a call waits.
#[derive(Debug)]
pub struct PodResources {
    runtime: Runtime,
    socket: PathBuf,
    timeout: Duration,
}

/// Why the kubelet's list can't be had.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// There is no socket, or nobody at it, or it may not be opened.
    #[error("cannot reach the kubelet at {}", socket.display())]
    Unreachable {
        /// Where.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It didn't answer in time.
    #[error("the kubelet at {} did not answer within {after:?}", socket.display())]
    TimedOut {
        /// Where.
        socket: PathBuf,
        /// How long it was waited.
        after: Duration,
    },
    /// It broke off, or spoke another protocol.
    #[error("the kubelet at {} broke off", socket.display())]
    BrokeOff {
        /// Where.
        socket: PathBuf,
        /// Why.
        source: hyper::Error,
    },
    /// It answered that it won't: an old kubelet doesn't know the call.
    #[error("the kubelet at {} refused: {} ({})", socket.display(), status.message(), status.code())]
    Refused {
        /// Where.
        socket: PathBuf,
        /// What it said.
        status: Box<tonic::Status>,
    },
}

impl PodResources {
    /// For a socket, which needn't be there yet; on most nodes `/var/lib/kubelet/pod-resources/kubelet.sock`. In a container its
    /// *folder* must be mounted: a mounted socket is the old one for ever. Errors: no more file descriptors.
    pub fn new(socket: impl Into<PathBuf>, timeout: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, socket: socket.into(), timeout })
    }

    /// What each pod was given. Shape: in the kubelet's order; pods without devices are left out.
    pub fn list(&self) -> Result<Vec<PodGrant>, KubeletError> {
        let reply = self.call(|mut kubelet| async move { kubelet.list(ListPodResourcesRequest {}).await })?;
        Ok(reply.into())
    }

    /// What plugins offer, given or not. Kubelets before 1.23 don't know.
    pub fn offered(&self) -> Result<Vec<PluginDevice>, KubeletError> {
        let request = AllocatableResourcesRequest {};
        self.call(|mut kubelet| async move { kubelet.get_allocatable_resources(request).await }).map(wire::offered)
    }

    fn call<F, T>(&self, ask: impl FnOnce(PodResourcesListerClient<Calls>) -> F) -> Result<T, KubeletError>
    where
        F: Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    {
        let socket = || self.socket.clone();
        let asked = async {
            let stream = UnixStream::connect(&self.socket).await;
            let stream = stream.map_err(|source| KubeletError::Unreachable { socket: socket(), source })?;
            let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
            let (sender, connection) =
                handshake.map_err(|source| KubeletError::BrokeOff { socket: socket(), source })?;
            let connection = tokio::spawn(connection);
            let client = PodResourcesListerClient::with_origin(Calls(sender), Uri::from_static("http://localhost"));
            let reply = ask(client.max_decoding_message_size(LONGEST_LIST)).await;
            connection.abort();
            // Waited for, so that the socket is closed now and not at the next look.
            let _ = connection.await;
            let refused = |status| KubeletError::Refused { socket: socket(), status: Box::new(status) };
            reply.map(tonic::Response::into_inner).map_err(refused)
        };
        let timed = async { tokio::time::timeout(self.timeout, asked).await };
        self.runtime.block_on(timed).unwrap_or(Err(KubeletError::TimedOut { socket: socket(), after: self.timeout }))
    }

    /// Where it asks.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

/// One connection, as the caller of a gRPC method wants it.
struct Calls(SendRequest<Body>);

impl Service<Request<Body>> for Calls {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
