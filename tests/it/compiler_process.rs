//! The process that compiles plugins: what it knows, what it may do, whose limits it has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tests::app::MASTER_KEY;
use tests::child;
use tests::{client, site};
use tokio_util::task::TaskTracker;

/// A server with a configuration file; killed when dropped.
struct Server {
    process: Child,
    access: Value,
    log: PathBuf,
}

impl Server {
    async fn start(folder: &Path, configuration: &str) -> Self {
        let (file, access) = (folder.join("own.toml"), folder.join("access.json"));
        let log = folder.join("log");
        fs::write(&file, configuration).unwrap();
        let mut process = child::program(site!())
            .arg("--config")
            .arg(&file)
            .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("data"))
            .arg("--json")
            .arg(&access)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        while !access.exists() {
            assert!(
                process.try_wait().unwrap().is_none(),
                "{}",
                fs::read_to_string(&log).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let access = serde_json::from_slice(&fs::read(&access).unwrap()).unwrap();
        Self {
            process,
            access,
            log,
        }
    }

    fn text(&self, key: &str) -> &str {
        self.access[key].as_str().unwrap()
    }

    /// Its child that compiles, if there is one.
    fn compiler(&self) -> Option<PathBuf> {
        let parent = format!("\nPPid:\t{}\n", self.process.id());
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        processes.map(|entry| entry.path()).find(|process| {
            let status = fs::read_to_string(process.join("status")).unwrap_or_default();
            let command = fs::read_to_string(process.join("cmdline")).unwrap_or_default();
            status.contains(&parent) && command.contains("compile-component")
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A component with a function of so many multiplications, each of which needs the one before, that compiling it takes
/// seconds.
fn enormous() -> Vec<u8> {
    fn sized(bytes: &[u8]) -> Vec<u8> {
        let (mut number, mut sized) = (bytes.len(), Vec::new());
        while number >= 0x80 {
            sized.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
            number >>= 7;
        }
        sized.push(u8::try_from(number).unwrap());
        sized.extend(bytes);
        sized
    }
    let mut body = vec![0, 0x20, 0];
    for _ in 0..2_000_000 {
        body.extend([0x20, 0, 0x6c]);
    }
    body.push(0x0b);
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    module.extend(b"\x01\x06\x01\x60\x01\x7f\x01\x7f\x03\x02\x01\0\x07\x05\x01\x01f\0\0");
    module.push(0x0a);
    module.extend(sized(&[&[1][..], &sized(&body)].concat()));
    let mut component = b"\0asm\x0d\0\x01\0\x01".to_vec();
    component.extend(sized(&module));
    component
}

/// The line of `/proc/…/status` or `limits` that begins so, its words.
fn line(text: &str, begins: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(begins));
    let words = line.unwrap_or_default().split_whitespace();
    words.map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_compiler_has_its_limits_and_no_secrets() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let configuration = "[plugins]\ncompileMemoryBytes = 1234567168\ncompileSeconds = 17\n\
                         [telemetry]\nlogFilter = \"info\"";
    let server = Server::start(folder.path(), configuration).await;
    let path = format!(
        "{}/v1/apps/{}/plugins",
        server.text("baseUrl"),
        server.text("appId")
    );
    let upload = client::build()
        .post(path)
        .bearer_auth(server.text("adminToken"))
        .header("content-type", "application/wasm")
        .body(enormous());
    let upload = TaskTracker::new().spawn(client::send(upload));

    // It is looked at until it is isolated, which is before it begins to compile.
    let (mut environment, mut command) = (None, String::new());
    let (mut status, mut limits) = (String::new(), String::new());
    while !upload.is_finished() && line(&limits, "Max processes") != ["0", "0", "processes"] {
        if let Some(process) = server.compiler() {
            let read = |name: &str| fs::read_to_string(process.join(name)).ok();
            if let Some((new, seen, arguments)) =
                read("limits").and_then(|limits| Some((limits, read("status")?, read("cmdline")?)))
            {
                (limits, status, command) = (new, seen, arguments);
                environment = fs::read(process.join("environ")).ok().or(environment);
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(
        environment.as_deref(),
        Some(&[][..]),
        "its environment is empty"
    );
    assert!(
        command.ends_with("compile-component\x001234567168\x0017\0"),
        "{command:?}"
    );
    assert!(!command.contains(MASTER_KEY));
    assert_eq!(line(&status, "NoNewPrivs:"), ["1"], "{status}");
    if Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
        assert_eq!(line(&status, "Seccomp:"), ["2"], "{status}");
    }
    for (name, limit) in [
        ("Max address space", ["1234567168"; 2]),
        ("Max processes", ["0"; 2]),
        ("Max open files", ["16"; 2]),
        ("Max core file size", ["0"; 2]),
        ("Max file size", ["1073741824"; 2]),
    ] {
        assert_eq!(line(&limits, name)[..2], limit, "{limits}");
    }
    let refused = upload.await.unwrap();
    assert!((400..500).contains(&refused.status), "{}", refused.text);

    // It is said while requests are taken already.
    let told = loop {
        let log = fs::read_to_string(&server.log).unwrap();
        let told = log
            .lines()
            .find(|line| line.contains("compiled in a process apart"));
        if let Some(told) = told {
            break told.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(told.contains("no_new_privs yes"), "{told}");
}
