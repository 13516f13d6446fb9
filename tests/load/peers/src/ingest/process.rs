//! A server's process.

use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, ensure};

/// Ends its process when it is dropped.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    pub(super) fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let child = command
            .spawn()
            .with_context(|| format!("can't start {}", command.get_program().display()))?;
        Ok(Self(child))
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Fails where the process has ended.
    pub(super) fn lives(&mut self) -> anyhow::Result<()> {
        let status = self.0.try_wait()?;
        ensure!(status.is_none(), "the server has ended: {status:?}");
        Ok(())
    }

    /// The processor time that it has used, in the kernel's ticks of 10 ms.
    pub(super) fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        // The program's name, in parentheses, may have spaces in it.
        let (_, fields) = stat.rsplit_once(')').context("an unknown /proc format")?;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<_, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Asks it to stop and waits until it has.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        let id = self.0.id().to_string();
        ensure!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()?
                .success(),
            "kill"
        );
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
