//! Embeds the files of the web page, as they are and compressed.
//!
//! Vendored modules import each other by the names of their packages, which a browser does not
//! know. The copies in the program have relative paths instead; the files in `page/vendor` stay as
//! they were published.

#[cfg(feature = "http")]
mod page {
    use std::fmt::Write as _;
    use std::io::{Result, Write as _};
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    /// The names of packages, and the files that contain them.
    const PACKAGES: [(&str, &str); 4] = [
        ("from\"preact\"", "from\"./preact.js\""),
        ("from\"preact/hooks\"", "from\"./hooks.js\""),
        ("from\"@preact/signals-core\"", "from\"./signals-core.js\""),
        // The maps are not in the program.
        ("//# sourceMappingURL=", "// "),
    ];

    /// The text in `index.html` that stands for the version of all files.
    const VERSION: &str = "VERSION";

    /// The line in `index.html` that stands for links to all modules.
    const MODULES: &str = "MODULES";

    struct File {
        path: String,
        content: Vec<u8>,
    }

    pub(super) fn embed() -> Result<()> {
        let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(std::io::Error::other)?).join("page");
        println!("cargo::rerun-if-changed={}", root.display());
        let mut files = Vec::new();
        collect(&root, "", &mut files)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let version = version(&files);
        let modules = modules(&files);
        for file in &mut files {
            if file.path == "index.html" {
                file.content = replace(&file.content, &[(MODULES, modules.trim_end()), (VERSION, &version)]);
            } else if file.path.starts_with("vendor/") {
                file.content = replace(&file.content, &PACKAGES);
            } else if file.path.ends_with(".js") {
                file.content = without_comments(&String::from_utf8_lossy(&file.content)).into_bytes();
            }
        }
        write_table(&files, &version)
    }

    fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                collect(&entry.path(), &format!("{path}/"), files)?;
            } else if content_type(&path).is_some() {
                files.push(File { path, content: fs::read(entry.path())? });
            }
        }
        Ok(())
    }

    /// Returns the content type of a file that is served; `None` for licences and other files.
    fn content_type(path: &str) -> Option<&'static str> {
        match path.rsplit_once('.')?.1 {
            "html" => Some("text/html; charset=utf-8"),
            "js" => Some("text/javascript; charset=utf-8"),
            "css" => Some("text/css; charset=utf-8"),
            "svg" => Some("image/svg+xml"),
            _ => None,
        }
    }

    fn replace(content: &[u8], texts: &[(&str, &str)]) -> Vec<u8> {
        let mut text = String::from_utf8_lossy(content).into_owned();
        for (from, to) in texts {
            text = text.replace(from, to);
        }
        text.into_bytes()
    }

    /// Empties the lines of a module that are comments. The others keep their numbers, so that an
    /// error in the browser names the line of the source.
    fn without_comments(text: &str) -> String {
        let mut is_in_comment = false;
        let mut code = String::with_capacity(text.len());
        for line in text.lines() {
            let trimmed = line.trim();
            let begins = trimmed.starts_with("/**") && (!trimmed.contains("*/") || trimmed.ends_with("*/"));
            if !(is_in_comment || begins || trimmed.starts_with("//")) {
                code.push_str(line);
            }
            is_in_comment = (is_in_comment || begins) && !trimmed.ends_with("*/");
            code.push('\n');
        }
        code
    }

    /// Returns a link to each module, so that the browser need not read one to know the next.
    fn modules(files: &[File]) -> String {
        let modules = files.iter().filter(|file| file.path.ends_with(".js"));
        let link = |file: &File| format!("<link rel=\"modulepreload\" href=\"assets/{VERSION}/{}\">\n", file.path);
        modules.map(link).collect()
    }

    /// Returns a digest of all files (FNV-1a): another content has another path.
    fn version(files: &[File]) -> String {
        let bytes = files.iter().flat_map(|file| file.path.bytes().chain([0]).chain(file.content.iter().copied()));
        let digest = bytes
            .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{digest:016x}")
    }

    fn write_table(files: &[File], version: &str) -> Result<()> {
        let target = PathBuf::from(env::var("OUT_DIR").map_err(std::io::Error::other)?);
        let mut table = format!("pub(super) const VERSION: &str = \"{version}\";\n");
        let _ = writeln!(table, "pub(super) const FILES: &[File] = &[");
        for (number, file) in files.iter().enumerate() {
            let (plain, packed) = (target.join(format!("{number}.plain")), target.join(format!("{number}.gz")));
            fs::write(&plain, &file.content)?;
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&file.content)?;
            fs::write(&packed, encoder.finish()?)?;
            let content_type = content_type(&file.path).unwrap_or_default();
            let _ = writeln!(
                table,
                "File {{ path: {:?}, content_type: {content_type:?}, plain: include_bytes!({plain:?}), gzip: \
                 include_bytes!({packed:?}) }},",
                file.path
            );
        }
        table.push_str("];\n");
        fs::write(target.join("page.rs"), table)
    }
}

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "http")]
    page::embed()?;
    Ok(())
}
