//! The process tree of a command.

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    /// The pause between checks of processes that were killed.
    const PAUSE: Duration = Duration::from_millis(1);

    /// The number of checks after which processes that have not ended are left to the system. Such
    /// processes wait for a disk, or start others faster than they are stopped.
    const LOOKS: u32 = 2000;

    /// A process as the kernel describes it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::process) struct Process {
        pub(in crate::process) parent: i32,
        pub(in crate::process) group: i32,
        pub(in crate::process) session: i32,
        is_over: bool,
    }

    impl Process {
        /// Returns a process by its id; `None` if it does not exist.
        pub(in crate::process) fn of(id: i32) -> Option<Self> {
            Self::parse(&fs::read_to_string(path(id, "stat")).ok()?)
        }

        fn parse(stat: &str) -> Option<Self> {
            // The fields follow the name, which may contain any character.
            let mut fields = stat.rsplit_once(") ")?.1.split(' ');
            let is_over = matches!(fields.next()?, "Z" | "X");
            let mut number = || fields.next()?.parse().ok();
            Some(Self { parent: number()?, group: number()?, session: number()?, is_over })
        }
    }

    /// Returns the value of a variable in the environment with which a process was started.
    pub(in crate::process) fn variable(id: i32, name: &str) -> Option<String> {
        let environment = fs::read(path(id, "environ")).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        String::from_utf8(value.to_vec()).ok()
    }

    /// Returns the children of a process, as the kernel lists them. Scans all processes if it does
    /// not.
    pub(in crate::process) fn children(id: i32) -> Vec<i32> {
        let threads = fs::read_dir(path(id, "task")).into_iter().flatten().flatten();
        let lists: Option<Vec<String>> =
            threads.map(|thread| fs::read_to_string(thread.path().join("children")).ok()).collect();
        match lists {
            Some(lists) => {
                lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|child| child.parse().ok()).collect()
            }
            None => children_among_all(id),
        }
    }

    pub(super) fn children_among_all(id: i32) -> Vec<i32> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
        ids.filter(|child| Process::of(*child).is_some_and(|process| process.parent == id)).collect()
    }

    /// Returns these processes and all their descendants, without those that have ended.
    pub(in crate::process) fn with_descendants(roots: Vec<i32>) -> BTreeSet<i32> {
        let (mut found, mut next) = (BTreeSet::new(), roots);
        while let Some(id) = next.pop() {
            if found.insert(id) {
                next.extend(children(id));
            }
        }
        found.retain(|id| Process::of(*id).is_some_and(|process| !process.is_over));
        found
    }

    /// Kills all processes that `find` returns, until it finds none. They are stopped first. A
    /// stopped process starts no other, and its children keep their parent until all are found.
    pub(in crate::process) fn end(mut find: impl FnMut() -> BTreeSet<i32>) {
        let mut stopped = BTreeSet::new();
        for _ in 0..LOOKS {
            let found = find();
            if found.is_empty() {
                return;
            }
            if found.is_subset(&stopped) {
                signal(&found, Signal::KILL);
                pause();
            } else {
                signal(&found, Signal::STOP);
                stopped.extend(found);
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the kernel reports only the ends of children, and these may be further down"
    )]
    fn pause() {
        std::thread::sleep(PAUSE);
    }

    /// Signals processes. Errors are ignored, because a process that has ended needs no signal.
    pub(in crate::process) fn signal(processes: &BTreeSet<i32>, what: Signal) {
        for process in processes.iter().filter_map(|id| Pid::from_raw(*id)) {
            let _ = kill_process(process, what);
        }
    }

    fn path(id: i32, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{id}/{name}"))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn both_ways_find_a_child() {
            let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
            let (own, id) = (i32::try_from(std::process::id()).unwrap(), i32::try_from(child.id()).unwrap());
            let found = [children(own), children_among_all(own)].map(|children| children.contains(&id));
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(found, [true, true]);
        }

        #[test]
        fn a_process_is_read_whatever_its_name() {
            let process = Process::parse("4711 (a) S 1 (b) Z 12 13 14 0 -1").unwrap();
            assert_eq!(process, Process { parent: 12, group: 13, session: 14, is_over: true });
        }
    }
}

#[cfg(target_os = "linux")]
pub(in crate::process) use linux::{Process, children, end, signal, variable, with_descendants};
