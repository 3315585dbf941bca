//! A test of the lists of conformance cases.

/// Checks the list because a case that is missing from it never runs, and the compiler does not
/// notice.
#[test]
fn every_case_is_listed() {
    let areas = [
        ("orchestrations", include_str!("../../src/conformance/lists/orchestrations.rs")),
        ("reading", include_str!("../../src/conformance/lists/reading.rs")),
        ("scheduling", include_str!("../../src/conformance/lists/scheduling.rs")),
        ("tasks", include_str!("../../src/conformance/lists/tasks.rs")),
    ];
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    for (area, list) in areas {
        for file in std::fs::read_dir(directory.join(area)).unwrap() {
            let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let cases = source.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next());
            for case in cases {
                assert!(list.contains(&format!("    {case},\n")), "`{case}` is not in lists/{area}.rs");
            }
        }
    }
}
