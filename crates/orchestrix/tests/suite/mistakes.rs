//! What the compiler says to somebody who forgot something. Every mistake is compiled for real.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The libraries that this test was built with, as cargo names them.
struct Libraries {
    orchestrix: PathBuf,
    serde: PathBuf,
}

fn libraries() -> &'static Libraries {
    static FOUND: OnceLock<Libraries> = OnceLock::new();
    FOUND.get_or_init(|| {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "-p", "orchestrix", "--lib", "--message-format=json", "--offline"]);
        if cfg!(feature = "sqlx") {
            command.arg("--all-features");
        }
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let messages: Vec<serde_json::Value> = String::from_utf8(output.stdout)
            .expect("cargo speaks UTF-8")
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let find = |name: &str| {
            let artifact = messages.iter().find(|message| {
                message["reason"] == "compiler-artifact"
                    && message["target"]["name"] == name
                    && message["target"]["kind"][0] == "lib"
            });
            let files = artifact.unwrap_or_else(|| panic!("cargo built no {name}"))["filenames"].as_array().cloned();
            let files = files.into_iter().flatten().filter_map(|file| file.as_str().map(PathBuf::from));
            files.into_iter().find(|file| file.extension().is_some_and(|end| end == "rlib")).expect("a library")
        };
        Libraries { orchestrix: find("orchestrix"), serde: find("serde") }
    })
}

/// What the compiler says to `code`, which it must refuse.
fn refused(name: &str, code: &str) -> String {
    let libraries = libraries();
    let scratch = env::temp_dir().join(format!("orchestrix-mistakes-{}-{name}", std::process::id()));
    fs::create_dir_all(&scratch).expect("a directory");
    let source = scratch.join("main.rs");
    let head = "use orchestrix::*; use serde::{Deserialize, Serialize};";
    fs::write(&source, format!("{head} fn main() {{}} {code}")).expect("a file");
    let deps = libraries.orchestrix.parent().expect("a directory");
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
        .expect("rustc runs");
    fs::remove_dir_all(&scratch).expect("the directory can be removed");
    assert!(!output.status.success(), "it compiles");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn says(name: &str, code: &str, expected: &[&str]) {
    let said = refused(name, code);
    for part in expected {
        assert!(said.contains(part), "nothing of {part:?} in:\n{said}");
    }
}

#[test]
fn a_type_that_is_no_job_is_told_how_to_become_one() {
    says(
        "job",
        "#[derive(Serialize, Deserialize)] struct Mail;
         async fn send(client: Client) { client.enqueue(Mail.into()).await; client.enqueue::<Mail>(Mail).await; }",
        &["`Mail` is not a job", "add `#[derive(serde::Serialize, serde::Deserialize, orchestrix::Job)]` to it"],
    );
}

#[test]
fn a_job_without_a_run_is_told_what_to_write() {
    says(
        "run",
        "#[derive(Serialize, Deserialize, Job)] struct Mail;
         fn work(client: &Client) { Worker::builder(client).job::<Mail>(); }",
        &[
            "`Mail` does not say how it is run",
            "write `impl Run for Mail { async fn run(self, ctx: Context) -> JobResult { … } }`",
            ".handler(|job: Mail, ctx: Context| async move { … })",
        ],
    );
    says(
        "blocking",
        "#[derive(Serialize, Deserialize, Job)] struct Resize;
         fn work(client: &Client) { Worker::builder(client).blocking_job::<Resize>(); }",
        &["`Resize` does not say how it is run", "impl RunBlocking for Resize"],
    );
}

#[test]
fn a_job_that_serde_does_not_know_is_told_so_by_name() {
    says("serde", "#[derive(Job)] struct Mail;", &["Mail: serde::Serialize", "Mail: serde::Deserialize"]);
}

#[test]
fn a_run_that_returns_something_else_than_the_output_is_shown_both() {
    says(
        "output",
        "#[derive(Serialize, Deserialize, Job)] #[job(output = u32)] struct Count;
         impl Run for Count { async fn run(self, _: Context) -> JobResult<String> { Ok(String::new()) } }",
        &["expected `Result<u32, JobError>`, found `Result<String, JobError>`"],
    );
}

#[test]
fn a_bad_attribute_is_pointed_at() {
    says(
        "attribute",
        r#"#[derive(Serialize, Deserialize, Job)] #[job(queue = "no good", timeout = "soon", colour = 3)] struct Mail;"#,
        &["queue = \"no good\"", "timeout = \"soon\"", "colour", "max_attempts"],
    );
}
