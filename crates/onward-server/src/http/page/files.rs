//! The files of the web page, embedded by the build script.

/// A file of the page.
#[derive(Debug)]
pub(super) struct File {
    /// The path below `page/`.
    pub(super) path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) plain: &'static [u8],
    pub(super) gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Returns the file of a path.
pub(super) fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest page, compressed, in bytes.
    const SIZE: usize = 80 * 1024;

    /// Shows: B10
    #[test]
    fn the_whole_page_is_small() {
        let size: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(size <= SIZE, "the page has {size} bytes, compressed");
    }

    #[test]
    fn no_module_imports_a_package_by_its_name() {
        for file in FILES.iter().filter(|file| file.path.ends_with(".js")) {
            let text = String::from_utf8_lossy(file.plain);
            for line in text.lines() {
                let mut imports = line.split("from\"").skip(1).chain(line.split("from '").skip(1));
                assert!(imports.all(|rest| rest.starts_with('.')), "{}: {line}", file.path);
            }
        }
    }

    #[test]
    fn the_version_is_in_the_page() {
        let page = find("index.html").expect("there is a page");
        assert!(String::from_utf8_lossy(page.plain).contains(&format!("assets/{VERSION}/app.js")));
    }
}
