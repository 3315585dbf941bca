//! How the cases are run on a store.

/// Runs every case of the conformance suite on the stores of a [`Fixture`](crate::Fixture): one `#[test]` each, in a module per
/// family.
///
/// The test crate needs `tokio` with the features `macros` and `rt`.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr) => {
        $crate::task_cases! { $fixture }
        $crate::scheduling_cases! { $fixture }
        $crate::reading_cases! { $fixture }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! run_cases {
    ($fixture:expr; $($family:ident { $($case:ident),* $(,)? })*) => {
        $(
            mod $family {
                #[allow(unused_imports, reason = "a fixture may be named by its full path")]
                use super::*;

                $(
                    #[tokio::test]
                    async fn $case() {
                        if $crate::is_missing(&$fixture) {
                            return;
                        }
                        let bench = $crate::Bench::open(&$fixture).await;
                        $crate::conformance::$family::$case(bench).await;
                    }
                )*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    /// A case that is not listed runs nowhere; the compiler sees nothing wrong with it.
    #[test]
    fn every_case_is_listed() {
        let list = [include_str!("tasks.rs"), include_str!("scheduling.rs"), include_str!("reading.rs")].concat();
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
        for file in std::fs::read_dir(directory).unwrap() {
            let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let cases = source.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next());
            for case in cases {
                assert!(list.contains(&format!("    {case},\n")), "`{case}` is not listed in src/cases");
            }
        }
    }
}
