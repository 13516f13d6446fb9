//! Addresses that a server listens on.

use std::io::{self, ErrorKind};

use anyhow::{anyhow, bail};
use nudge_platform::config::Config;
use tokio::net::TcpListener;

/// Too many open files: of the process, of the system.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

/// What an address is for: the key that has it, and the flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    key: &'static str,
    flag: &'static str,
}

/// Where the API is.
pub(crate) const API: Purpose = Purpose {
    key: "server.listen",
    flag: "--listen",
};
/// Where the operators' routes are.
pub(crate) const OPERATIONS: Purpose = Purpose {
    key: "server.opsListen",
    flag: "--ops-listen",
};

/// Listens on an address.
pub(crate) async fn listen(purpose: Purpose, address: &str) -> anyhow::Result<TcpListener> {
    let listening = TcpListener::bind(address).await;
    listening.map_err(|error| refused(purpose, address, &error))
}

/// Whether a server could listen on an address. One that is taken will do: a server may well be running there.
pub(crate) async fn check(purpose: Purpose, address: &str) -> anyhow::Result<()> {
    match TcpListener::bind(address).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(()),
        Err(error) => Err(refused(purpose, address, &error)),
    }
}

/// Two listeners can't have one address; port 0 is another one each time.
pub(crate) fn check_differ(config: &Config) -> anyhow::Result<()> {
    let server = &config.server;
    let is_free = server.listen.ends_with(":0");
    if server.listen == server.ops_listen && !is_free {
        bail!(
            "`server.opsListen` is `server.listen`, {}: give the operators' routes another address (`--ops-listen`)",
            server.listen
        );
    }
    Ok(())
}

/// Why an address can't be listened on, and what to do.
fn refused(Purpose { key, flag }: Purpose, address: &str, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "another program listens on {address}: stop it, or choose another address with {flag} (port 0 picks a free one)"
        ),
        ErrorKind::AddrNotAvailable => {
            anyhow!("`{key}`: {address} is no address of this machine: choose another with {flag}")
        }
        ErrorKind::PermissionDenied => anyhow!(
            "`{key}`: this user may not listen on {address}: choose a port above 1023 with {flag}"
        ),
        // What a process may have, and what all of them may.
        _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => anyhow!(
            "`{key}`: too many files are open to listen on {address}: raise the limit, as with `ulimit -n` or systemd's `LimitNOFILE`"
        ),
        _ => anyhow!(
            "`{key}`: `{address}` is no address to listen on ({error}): write it as 127.0.0.1:8480, with {flag}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_no_fault_of_the_address() {
        for code in [EMFILE, ENFILE] {
            let error = io::Error::from_raw_os_error(code);
            let refused = refused(OPERATIONS, "127.0.0.1:9464", &error).to_string();
            assert!(refused.contains("LimitNOFILE"), "{refused}");
        }
    }
}
