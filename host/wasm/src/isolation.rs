//! What the process that compiles may do besides computing: read and write the files that it was given.
//!
//! It opens no file and no connection, starts no process and no program, signals nobody else, and makes no memory
//! executable. The kernel sees to that twice where it can, by seccomp and by Landlock. Both hold for the thread that asks
//! for them and for those that it starts from then on.

use std::fmt;

/// What isolates a process; each as far as the kernel has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    /// No program that it starts gets more rights than it has.
    pub no_new_privileges: bool,
    /// System calls other than those for computing are not there.
    pub seccomp: bool,
    /// Files, ports and processes outside are out of reach.
    pub landlock: Reach,
}

/// How much of what was asked of Landlock the kernel enforces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Nothing.
    #[default]
    Nothing,
    /// What a kernel of its age knows: files, and perhaps ports.
    Partly,
    /// All.
    Fully,
}

impl fmt::Display for Isolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |is| if is { "yes" } else { "no" };
        let landlock = match self.landlock {
            Reach::Nothing => "no",
            Reach::Partly => "partly",
            Reach::Fully => "yes",
        };
        let (privileges, seccomp) = (word(self.no_new_privileges), word(self.seccomp));
        write!(
            formatter,
            "no_new_privs {privileges}, seccomp {seccomp}, landlock {landlock}"
        )
    }
}

/// Isolates the calling thread, and those that it starts from now on, as far as the kernel can. There is no way back.
#[cfg(target_os = "linux")]
pub fn isolate() -> Isolation {
    Isolation {
        no_new_privileges: rustix::thread::set_no_new_privs(true).is_ok(),
        landlock: linux::restrict_reach().unwrap_or_default(),
        // The last, since it takes the calls of the others away.
        seccomp: linux::restrict_calls(),
    }
}

/// Other systems have nothing of the sort that a process may ask for by itself.
#[cfg(not(target_os = "linux"))]
pub fn isolate() -> Isolation {
    Isolation::default()
}

#[cfg(target_os = "linux")]
mod linux {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetError,
        RulesetStatus, Scope,
    };

    use super::Reach;

    /// Takes all files, ports, abstract sockets and signals away. What is open stays open.
    pub(super) fn restrict_reach() -> Result<Reach, RulesetError> {
        let abi = ABI::V6;
        let restricted = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?
            .create()?
            .restrict_self()?;
        Ok(match restricted.ruleset {
            RulesetStatus::FullyEnforced => Reach::Fully,
            RulesetStatus::PartiallyEnforced => Reach::Partly,
            RulesetStatus::NotEnforced => Reach::Nothing,
        })
    }

    pub(super) use calls::restrict as restrict_calls;

    /// Processors that the filter can be made for.
    #[cfg(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    ))]
    mod calls {
        use std::collections::BTreeMap;
        use std::process;

        use libc::c_long;
        use seccompiler::{
            BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
            SeccompCondition, SeccompFilter, SeccompRule,
        };

        /// What threads that compute ask of the kernel, whatever the arguments.
        const COMPUTING: [c_long; 33] = [
            libc::SYS_brk,
            libc::SYS_clock_getres,
            libc::SYS_clock_gettime,
            libc::SYS_clock_nanosleep,
            libc::SYS_close,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_futex,
            libc::SYS_getcpu,
            libc::SYS_getpid,
            libc::SYS_getrandom,
            libc::SYS_gettid,
            libc::SYS_lseek,
            libc::SYS_madvise,
            libc::SYS_membarrier,
            libc::SYS_mremap,
            libc::SYS_munmap,
            libc::SYS_nanosleep,
            libc::SYS_pread64,
            libc::SYS_pwrite64,
            libc::SYS_read,
            libc::SYS_restart_syscall,
            libc::SYS_rseq,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sched_getaffinity,
            libc::SYS_sched_yield,
            libc::SYS_set_robust_list,
            libc::SYS_set_tid_address,
            libc::SYS_sigaltstack,
            libc::SYS_write,
            libc::SYS_writev,
        ];

        /// What a new thread may not be given of its own.
        const NAMESPACES: u64 = (libc::CLONE_NEWCGROUP
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWNS
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWUSER
            | libc::CLONE_NEWUTS) as u64;
        const EXECUTABLE: u64 = libc::PROT_EXEC as u64;
        const THREAD: u64 = libc::CLONE_THREAD as u64;

        /// Takes away all system calls but those that compiling takes. The others answer as if the kernel did not have
        /// them, for which libraries have other ways. False: the kernel takes no filter.
        pub(in super::super) fn restrict() -> bool {
            let filter = filter().and_then(BpfProgram::try_from);
            filter.is_ok_and(|filter| seccompiler::apply_filter(&filter).is_ok())
        }

        fn filter() -> Result<SeccompFilter, BackendError> {
            let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
                COMPUTING.iter().map(|call| (*call, Vec::new())).collect();
            let bits = |argument, mask, value| {
                let operator = SeccompCmpOp::MaskedEq(mask);
                SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)
            };
            let own = u64::from(process::id());
            let itself = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, own)?;
            let processes = SeccompCondition::new(
                1,
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::Eq,
                u64::from(libc::RLIMIT_NPROC),
            )?;
            for (call, condition) in [
                // Threads, and no processes. (What asks by `clone3`, which can't be looked into, asks again so.)
                (libc::SYS_clone, bits(0, THREAD | NAMESPACES, THREAD)?),
                (libc::SYS_mmap, bits(2, EXECUTABLE, 0)?),
                (libc::SYS_mprotect, bits(2, EXECUTABLE, 0)?),
                // The last limit is set when all threads are there.
                (libc::SYS_prlimit64, processes),
                // To end itself.
                (libc::SYS_tgkill, itself),
            ] {
                rules.insert(call, vec![SeccompRule::new(vec![condition])?]);
            }
            let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
            let architecture = std::env::consts::ARCH.try_into()?;
            SeccompFilter::new(rules, absent, SeccompAction::Allow, architecture)
        }
    }

    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    )))]
    mod calls {
        /// No filter can be made for this processor.
        pub(in super::super) fn restrict() -> bool {
            false
        }
    }
}
