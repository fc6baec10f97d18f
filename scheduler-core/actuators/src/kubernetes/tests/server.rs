//! The API server: HTTP/1.1 on loopback, a connection a thread.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

type Hook = Box<dyn FnOnce(&Server) + Send>;

#[derive(Default)]
struct Store {
    objects: BTreeMap<String, Value>,
    version: u64,
    asked: Vec<Asked>,
    eviction_refusals: Vec<(u16, Option<u32>)>,
    conflicts: usize,
    everything: Option<u16>,
    has_no_groups: bool,
    before_eviction: Option<Hook>,
    before_patch: Option<Hook>,
}

struct Asked {
    method: String,
    path: String,
    body: Value,
    status: u16,
}

#[derive(Clone)]
pub(super) struct Server {
    store: Arc<Mutex<Store>>,
    port: u16,
    folder: Arc<tempfile::TempDir>,
}

struct Answer {
    status: u16,
    body: Value,
    retry_after: Option<u32>,
}

fn answer(status: u16, body: Value) -> Answer {
    Answer { status, body, retry_after: None }
}

/// As the server says no.
fn status(code: u16, reason: &str, message: &str) -> Answer {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code});
    answer(code, body)
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = Arc::new(tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("token"), "secret\n").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self { store: Arc::default(), port, folder };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, stream) = (serving.clone(), stream.unwrap());
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// Makes an object or changes it.
    pub(super) fn put(&self, path: &str, mut object: Value) {
        let mut store = self.store.lock().unwrap();
        store.version += 1;
        object["metadata"]["resourceVersion"] = json!(store.version.to_string());
        store.objects.insert(path.to_owned(), object);
    }

    pub(super) fn get(&self, path: &str) -> Option<Value> {
        self.store.lock().unwrap().objects.get(path).cloned()
    }

    /// The next evictions are refused, the later ones are not.
    pub(super) fn refuse_evictions(&self, times: usize, status: u16, retry_after: Option<u32>) {
        self.store.lock().unwrap().eviction_refusals = vec![(status, retry_after); times];
    }

    pub(super) fn before_evictions(&self, hook: impl FnOnce(&Server) + Send + 'static) {
        self.store.lock().unwrap().before_eviction = Some(Box::new(hook));
    }

    pub(super) fn before_patches(&self, hook: impl FnOnce(&Server) + Send + 'static) {
        self.store.lock().unwrap().before_patch = Some(Box::new(hook));
    }

    /// Somebody else's change comes before the next one.
    pub(super) fn conflict_once(&self) {
        self.store.lock().unwrap().conflicts = 1;
    }

    pub(super) fn answer_everything(&self, status: u16) {
        self.store.lock().unwrap().everything = Some(status);
    }

    pub(super) fn forget_groups(&self) {
        self.store.lock().unwrap().has_no_groups = true;
    }

    pub(super) fn asked(&self) -> Vec<(String, String)> {
        let store = self.store.lock().unwrap();
        store.asked.iter().map(|asked| (asked.method.clone(), asked.path.clone())).collect()
    }

    pub(super) fn bodies(&self, method: &str, path: &str) -> Vec<Value> {
        let store = self.store.lock().unwrap();
        let is_it = |asked: &&Asked| asked.method == method && asked.path == path;
        store.asked.iter().filter(is_it).map(|asked| asked.body.clone()).collect()
    }

    pub(super) fn statuses(&self, method: &str, path: &str) -> Vec<u16> {
        let store = self.store.lock().unwrap();
        store
            .asked
            .iter()
            .filter(|asked| asked.method == method && asked.path == path)
            .map(|asked| asked.status)
            .collect()
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some((method, target, headers, body)) = read(&mut reader) {
            let path = target.split('?').next().unwrap().to_owned();
            let header = |name: &str| headers.get(name).map(String::as_str).unwrap_or_default();
            let body: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
            let given = if header("authorization") == "Bearer secret" {
                self.answer(&method, &path, header("content-type"), &body)
            } else {
                status(401, "Unauthorized", "Unauthorized")
            };
            self.store.lock().unwrap().asked.push(Asked { method, path, body, status: given.status });
            let text = given.body.to_string();
            let retry = given.retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {} X\r\nContent-Type: application/json\r\n{retry}Content-Length: {}\r\n\r\n",
                given.status,
                text.len()
            );
            if (&*stream).write_all((head + &text).as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, method: &str, path: &str, kind: &str, body: &Value) -> Answer {
        if let Some(code) = self.store.lock().unwrap().everything {
            return status(code, "ServiceUnavailable", "etcdserver: leader changed");
        }
        if let Some(pod) = path.strip_suffix("/eviction").filter(|_| method == "POST") {
            return self.evict(pod, body);
        }
        if let Some(group) = path.strip_prefix("/apis/").filter(|group| !group.contains('/')) {
            return self.group(group);
        }
        if self.get(path).is_none() {
            return status(404, "NotFound", &format!("{path} not found"));
        }
        match (method, kind) {
            ("GET", _) => answer(200, self.get(path).unwrap()),
            ("PUT", "application/json") => self.change(path, body, |_, body| Ok(body.clone())),
            ("PATCH", "application/merge-patch+json") => self.change(path, body, |object, body| {
                let mut merged = object.clone();
                merge(&mut merged, body);
                Ok(merged)
            }),
            ("PATCH", "application/json-patch+json") => {
                let hook = self.store.lock().unwrap().before_patch.take();
                if let Some(hook) = hook {
                    hook(self);
                }
                let patched = patch(&self.get(path).unwrap(), body);
                match patched {
                    Ok(object) => self.store(path, object),
                    Err(message) => status(422, "Invalid", &message),
                }
            }
            _ => status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
        }
    }

    fn change(&self, path: &str, body: &Value, change: impl Fn(&Value, &Value) -> Result<Value, String>) -> Answer {
        {
            let mut store = self.store.lock().unwrap();
            if store.conflicts > 0 {
                store.conflicts -= 1;
                store.version += 1;
                let version = store.version.to_string();
                store.objects.get_mut(path).unwrap()["metadata"]["resourceVersion"] = json!(version);
            }
        }
        let object = self.get(path).unwrap();
        let wanted = &body["metadata"]["resourceVersion"];
        if !wanted.is_null() && *wanted != object["metadata"]["resourceVersion"] {
            let message = "the object has been modified; please apply your changes to the latest version and try again";
            return status(409, "Conflict", message);
        }
        match change(&object, body) {
            Ok(object) => self.store(path, object),
            Err(message) => status(422, "Invalid", &message),
        }
    }

    /// Keeps it; what a controller does for it is done at once.
    fn store(&self, path: &str, mut object: Value) -> Answer {
        if path.ends_with("/scale") {
            object["status"]["replicas"] = object["spec"]["replicas"].clone();
        }
        self.put(path, object);
        answer(200, self.get(path).unwrap())
    }

    fn evict(&self, pod: &str, body: &Value) -> Answer {
        let (hook, refusal) = {
            let mut store = self.store.lock().unwrap();
            (store.before_eviction.take(), store.eviction_refusals.pop())
        };
        if let Some(hook) = hook {
            hook(self);
        }
        let Some(object) = self.get(pod) else { return status(404, "NotFound", "pods \"train-0\" not found") };
        match refusal {
            Some((429, retry_after)) => {
                let message = "Cannot evict pod as it would violate the pod's disruption budget.";
                return Answer { retry_after, ..status(429, "TooManyRequests", message) };
            }
            Some((code, _)) => {
                let message =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return status(code, "InternalError", message);
            }
            None => {}
        }
        let wanted = &body["deleteOptions"]["preconditions"]["uid"];
        if !wanted.is_null() && *wanted != object["metadata"]["uid"] {
            return status(409, "Conflict", "the UID in the precondition does not match the UID in record");
        }
        self.store.lock().unwrap().objects.remove(pod);
        answer(201, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
    }

    fn group(&self, group: &str) -> Answer {
        let version = match group {
            _ if self.store.lock().unwrap().has_no_groups => None,
            "kueue.x-k8s.io" => Some("v1beta2"),
            "scheduling.volcano.sh" => Some("v1beta1"),
            "scheduling.run.ai" => Some("v2"),
            "kubeflow.org" => Some("v1"),
            _ => None,
        };
        let Some(version) = version else {
            return status(404, "NotFound", "the server could not find the requested resource");
        };
        let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
        answer(200, json!({"kind": "APIGroup", "name": group, "versions": [version], "preferredVersion": version}))
    }
}

/// RFC 7386.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let map = object.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// RFC 6902, as far as test, add and remove in objects.
fn patch(object: &Value, operations: &Value) -> Result<Value, String> {
    let mut object = object.clone();
    for operation in operations.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        match operation["op"].as_str().unwrap() {
            "test" if object.pointer(path) == Some(&operation["value"]) => {}
            "test" => return Err(format!("testing value {path} failed: test failed")),
            word => {
                let (parent, key) = path.rsplit_once('/').unwrap();
                let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
                let parent = parent.ok_or_else(|| format!("{path}: no such path"))?;
                match word {
                    "add" => drop(parent.insert(key.to_owned(), operation["value"].clone())),
                    "remove" => drop(parent.remove(key).ok_or_else(|| format!("{path}: nothing to remove"))?),
                    other => return Err(format!("{other}: no operation")),
                }
            }
        }
    }
    Ok(object)
}

type Question = (String, String, BTreeMap<String, String>, Vec<u8>);

fn read(reader: &mut impl BufRead) -> Option<Question> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_ascii_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((method, target, headers, body))
}
