//! An API server, as far as lists and watches of pods and lists of resource slices show one.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::http::{Request, Response};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;

/// What it knows, and how it behaves.
#[derive(Default)]
pub struct Store {
    pods: BTreeMap<(String, String), Value>,
    events: Vec<(u64, Value)>,
    version: u64,
    watchers: Vec<mpsc::UnboundedSender<Bytes>>,
    /// Events up to this version are forgotten.
    pub forgotten: u64,
    /// Whether a watch from a forgotten version is refused with status 410, and not by an event that says so.
    pub refuses_expired: bool,
    /// Status with which everything is refused.
    pub refusal: Option<u16>,
    /// The only token that is let in.
    pub token: Option<String>,
    /// Pods a page of a list.
    pub page: Option<usize>,
    /// How many tokens of pages it forgets as soon as it has given them.
    pub expiring_pages: usize,
    /// Resource slices, by version of their interface.
    pub slices: BTreeMap<String, Vec<Value>>,
    /// Paths that were asked for, in order.
    pub asked: Vec<String>,
}

impl Store {
    /// Makes a pod or changes it.
    pub fn put(&mut self, mut pod: Value) {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let is_new = self.pods.insert(key(&pod), pod.clone()).is_none();
        self.tell(if is_new { "ADDED" } else { "MODIFIED" }, pod);
    }

    /// Deletes a pod.
    pub fn delete(&mut self, namespace: &str, name: &str) {
        self.version += 1;
        let mut pod = self.pods.remove(&(namespace.to_owned(), name.to_owned())).expect("a pod that is there");
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.tell("DELETED", pod);
    }

    /// Says that nothing happened up to now.
    pub fn bookmark(&mut self) {
        self.version += 1;
        let object =
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": self.version.to_string()}});
        self.tell("BOOKMARK", object);
    }

    /// Forgets what happened.
    pub fn forget(&mut self) {
        self.forgotten = self.version;
        self.events.clear();
    }

    /// Ends all watches, as a server does after some minutes.
    pub fn end_watches(&mut self) {
        self.watchers.clear();
    }

    pub fn asked_for(&self, part: &str) -> usize {
        self.asked.iter().filter(|path| path.contains(part)).count()
    }

    fn tell(&mut self, kind: &str, object: Value) {
        let event = json!({"type": kind, "object": object});
        self.watchers.retain(|watcher| watcher.send(line(&event)).is_ok());
        self.events.push((self.version, event));
    }
}

fn key(pod: &Value) -> (String, String) {
    let text = |name: &str| pod["metadata"][name].as_str().unwrap().to_owned();
    (text("namespace"), text("name"))
}

fn line(event: &Value) -> Bytes {
    format!("{event}\n").into()
}

/// A server that runs until it is dropped or stopped.
pub struct Server {
    pub port: u16,
    pub store: Arc<Mutex<Store>>,
    tls: Option<TlsAcceptor>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(None)
    }

    pub fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let mut server = Self { port: 0, store: Arc::default(), tls, running: None };
        server.store.lock().unwrap().version = 100;
        server.start_anew();
        server
    }

    /// Starts at the port it had, if it had one.
    pub fn start_anew(&mut self) {
        self.stop();
        let (stop, stopped) = oneshot::channel();
        let (started, port) = std::sync::mpsc::channel();
        let (store, tls, wanted) = (self.store.clone(), self.tls.clone(), self.port);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind(("127.0.0.1", wanted)).await.unwrap();
                started.send(listener.local_addr().unwrap().port()).unwrap();
                tokio::select! {
                    () = serve(listener, store, tls) => {}
                    _ = stopped => {}
                }
            });
        });
        self.port = port.recv_timeout(Duration::from_secs(60)).unwrap();
        self.running = Some((stop, thread));
    }

    pub fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            thread.join().unwrap();
            self.with(Store::end_watches);
        }
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut Store) -> T) -> T {
        act(&mut self.store.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn serve(listener: TcpListener, store: Arc<Mutex<Store>>, tls: Option<TlsAcceptor>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (store, tls) = (store.clone(), tls.clone());
        tokio::spawn(async move {
            let reply = service_fn(move |request| {
                let reply = reply(&mut store.lock().unwrap(), &request);
                async move { Ok::<_, Infallible>(reply) }
            });
            let http = http1::Builder::new();
            match tls {
                None => _ = http.serve_connection(TokioIo::new(stream), reply).await,
                // A client that doesn't believe the certificate breaks off.
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        _ = http.serve_connection(TokioIo::new(stream), reply).await;
                    }
                }
            }
        });
    }
}

type Reply = Response<BoxBody<Bytes, Infallible>>;

fn reply(store: &mut Store, request: &Request<Incoming>) -> Reply {
    let uri = request.uri().to_string();
    store.asked.push(uri.clone());
    if let Some(status) = store.refusal {
        return refused(status);
    }
    let token = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
    if store.token.as_ref().is_some_and(|wanted| token != Some(format!("Bearer {wanted}"))) {
        return refused(401);
    }
    let (path, query) = uri.split_once('?').unwrap_or((&uri, ""));
    let query: BTreeMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let Some(node) = query.get("fieldSelector").and_then(|selector| selector.strip_prefix("spec.nodeName%3D")) else {
        return refused(400);
    };
    match path {
        "/api/v1/pods" if query.contains_key("watch") => watch(store, node, query["resourceVersion"]),
        "/api/v1/pods" => list(store, node, query.get("continue").copied()),
        _ => {
            let version =
                path.strip_prefix("/apis/resource.k8s.io/").and_then(|rest| rest.strip_suffix("/resourceslices"));
            match version.and_then(|version| store.slices.get(version)) {
                Some(slices) => json_reply(200, &json!({"metadata": {"resourceVersion": "1"}, "items": slices})),
                None => refused(404),
            }
        }
    }
}

fn list(store: &mut Store, node: &str, next: Option<&str>) -> Reply {
    // A page's token is the place where it begins, with a character that must be encoded.
    let from = match next.map(|token| token.strip_prefix("at%2B").and_then(|place| place.parse::<usize>().ok())) {
        None => 0,
        Some(_) if store.expiring_pages > 0 => {
            store.expiring_pages -= 1;
            return refused(410);
        }
        Some(place) => place.expect("a token that was given"),
    };
    let all: Vec<&Value> = store.pods.values().filter(|pod| pod["spec"]["nodeName"] == node).collect();
    let page = store.page.unwrap_or(usize::MAX);
    let items: Vec<&Value> = all.iter().skip(from).take(page).copied().collect();
    let is_last = from.saturating_add(page) >= all.len();
    let next = if is_last { String::new() } else { format!("at+{}", from + page) };
    let metadata = json!({"resourceVersion": store.version.to_string(), "continue": next});
    json_reply(200, &json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}))
}

fn watch(store: &mut Store, node: &str, from: &str) -> Reply {
    let from: u64 = from.parse().expect("a version that was given");
    let (watcher, lines) = mpsc::unbounded_channel();
    if from < store.forgotten {
        if store.refuses_expired {
            return refused(410);
        }
        let status = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"});
        watcher.send(line(&json!({"type": "ERROR", "object": status}))).unwrap();
    } else {
        for (_, event) in store.events.iter().filter(|(version, _)| *version > from) {
            let is_ours = event["type"] == "BOOKMARK" || event["object"]["spec"]["nodeName"] == node;
            if is_ours {
                watcher.send(line(event)).unwrap();
            }
        }
        store.watchers.push(watcher);
    }
    Response::new(Lines(lines).boxed())
}

fn refused(status: u16) -> Reply {
    json_reply(status, &json!({"kind": "Status", "status": "Failure", "code": status}))
}

fn json_reply(status: u16, body: &Value) -> Reply {
    Response::builder().status(status).body(Full::new(Bytes::from(body.to_string())).boxed()).unwrap()
}

/// Events as they come, until their sender is dropped.
struct Lines(mpsc::UnboundedReceiver<Bytes>);

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}
