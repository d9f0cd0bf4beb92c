//! The compiler errors for common mistakes. Each mistake is compiled with rustc.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The paths of the libraries that this test was built with, as cargo reports them.
struct Libraries {
    orchestrix: PathBuf,
    serde: PathBuf,
}

fn libraries() -> &'static Libraries {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--message-format=json", "--offline"]);
        match cfg!(feature = "sqlx") {
            // What `cargo xtask test` has built already.
            true => command.args(["--workspace", "--all-features", "--examples"]),
            false => command.args(["-p", "orchestrix", "--lib"]),
        };
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let messages: Vec<serde_json::Value> = String::from_utf8(output.stdout)
            .expect("cargo prints UTF-8")
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let find = |name: &str| {
            let artifact = messages.iter().find(|message| {
                message["reason"] == "compiler-artifact"
                    && message["target"]["name"] == name
                    && message["target"]["kind"][0] == "lib"
            });
            let files =
                artifact.unwrap_or_else(|| panic!("cargo did not build {name}"))["filenames"].as_array().cloned();
            let files = files.into_iter().flatten().filter_map(|file| file.as_str().map(PathBuf::from));
            files
                .into_iter()
                .find(|file| file.extension().is_some_and(|end| end == "rlib"))
                .expect("cargo reports an rlib")
        };
        Libraries { orchestrix: find("orchestrix"), serde: find("serde") }
    })
}

/// Compiles `code`, which must fail, and returns the compiler's output.
fn compile_error(name: &str, code: &str) -> String {
    let libraries = libraries();
    let scratch = env::temp_dir().join(format!("orchestrix-mistakes-{}-{name}", std::process::id()));
    fs::create_dir_all(&scratch).expect("the directory can be created");
    let source = scratch.join("main.rs");
    let head = "use orchestrix::*; use serde::{Deserialize, Serialize};";
    fs::write(&source, format!("{head} fn main() {{}} {code}")).expect("the file can be written");
    let deps = libraries.orchestrix.parent().expect("the library is in a directory");
    let deps = if deps.ends_with("deps") { deps.to_owned() } else { deps.join("deps") };
    let library = |name: &str, path: &Path| format!("--extern={name}={}", path.display());
    let output = Command::new("rustc")
        .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "-Awarnings"])
        .arg(format!("-Ldependency={}", deps.display()))
        .arg(library("orchestrix", &libraries.orchestrix))
        .arg(library("serde", &libraries.serde))
        .arg("--out-dir")
        .arg(&scratch)
        .arg(&source)
        .output()
        .expect("rustc can be started");
    fs::remove_dir_all(&scratch).expect("the directory can be removed");
    assert!(!output.status.success(), "the code compiled without an error");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_error(name: &str, code: &str, expected: &[&str]) {
    let error = compile_error(name, code);
    for part in expected {
        assert!(error.contains(part), "{part:?} is missing in:\n{error}");
    }
}

#[test]
fn enqueueing_a_type_that_is_no_job_names_the_derive() {
    assert_error(
        "job",
        "#[derive(Serialize, Deserialize)] struct Mail;
         async fn send(client: Client) { client.enqueue(Mail.into()).await; client.enqueue::<Mail>(Mail).await; }",
        &["`Mail` is not a job", "add `#[derive(serde::Serialize, serde::Deserialize, orchestrix::Job)]` to it"],
    );
}

#[test]
fn a_job_without_a_handler_shows_the_impl_to_write() {
    assert_error(
        "run",
        "#[derive(Serialize, Deserialize, Job)] struct Mail;
         fn work(client: &Client) { Worker::builder(client).job::<Mail>(); }",
        &[
            "`Mail` has no handler: it does not implement `Run`",
            "write `impl Run for Mail { async fn run(self, ctx: Context) -> JobResult { … } }`",
            ".handler(|job: Mail, ctx: Context| async move { … })",
        ],
    );
    assert_error(
        "blocking",
        "#[derive(Serialize, Deserialize, Job)] struct Resize;
         fn work(client: &Client) { Worker::builder(client).blocking_job::<Resize>(); }",
        &["`Resize` has no handler: it does not implement `RunBlocking`", "impl RunBlocking for Resize"],
    );
}

#[test]
fn a_job_without_serde_names_the_missing_traits() {
    assert_error("serde", "#[derive(Job)] struct Mail;", &["Mail: serde::Serialize", "Mail: serde::Deserialize"]);
}

#[test]
fn a_handler_with_the_wrong_output_shows_both_types() {
    assert_error(
        "output",
        "#[derive(Serialize, Deserialize, Job)] #[job(output = u32)] struct Count;
         impl Run for Count { async fn run(self, _: Context) -> JobResult<String> { Ok(String::new()) } }",
        &["expected `Result<u32, JobError>`, found `Result<String, JobError>`"],
    );
}

#[test]
fn an_invalid_attribute_is_highlighted() {
    assert_error(
        "attribute",
        r#"#[derive(Serialize, Deserialize, Job)] #[job(queue = "no good", timeout = "soon", colour = 3)] struct Mail;"#,
        &["queue = \"no good\"", "timeout = \"soon\"", "colour", "max_attempts"],
    );
}
