//! A real Alertmanager for tests, on loopback, with a folder of its own, ended with the test; and who it tells.

use crate::{LONG, free_port};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The program, as Debian's package calls it.
pub const ALERTMANAGER: &str = "prometheus-alertmanager";

/// A running Alertmanager.
pub struct Alertmanager {
    port: u16,
    child: Child,
    _folder: TempDir,
}

impl Alertmanager {
    /// Tells whoever listens on a port of this machine of each alert by itself, at once, and when it is over.
    pub fn telling(receiver: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = folder.path().join("alertmanager.yml");
        let text = format!(
            "route: {{receiver: hook, group_by: ['...'], group_wait: 1s, group_interval: 1s, repeat_interval: 24h}}\n\
             receivers: [{{name: hook, webhook_configs: [{{url: 'http://127.0.0.1:{receiver}/', send_resolved: true}}]}}]\n"
        );
        std::fs::write(&config, text).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(ALERTMANAGER)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--cluster.listen-address=")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let alertmanager = Self { port, child, _folder: folder };
        until("Alertmanager is ready", || alertmanager.get("/-/ready"));
        alertmanager
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The alerts that hold now.
    pub fn alerts(&self) -> Vec<Value> {
        let text = self.get("/api/v2/alerts").expect("it answers");
        serde_json::from_str(&text).unwrap()
    }

    fn get(&self, path: &str) -> Option<String> {
        ureq::get(format!("{}{path}", self.url())).call().ok()?.body_mut().read_to_string().ok()
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Takes what is posted to it, and keeps it.
pub struct Receiver {
    port: u16,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    /// On a port of this machine.
    pub fn start() -> Self {
        Self::on(free_port())
    }

    /// On this port.
    pub fn on(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = bodies.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Some(body) = answered(stream) {
                    kept.lock().unwrap().push(body);
                }
            }
        });
        Self { port, bodies }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What came so far.
    pub fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }

    /// Waits until so many came. Comes back with them.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Value> {
        until(&format!("{count} messages"), || Some(self.bodies()).filter(|bodies| bodies.len() >= count))
    }
}

/// Reads one request, and says that all is well.
fn answered(mut stream: TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok()?;
    serde_json::from_slice(&body).ok()
}

#[track_caller]
fn until<T>(what: &str, answer: impl Fn() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(since.elapsed() < LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
