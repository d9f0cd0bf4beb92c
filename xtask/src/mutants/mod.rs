//! `cargo xtask mutants`: plants known bugs, one at a time, in a copy of the tree, and sees whether the tests notice.
//!
//! A bug that no test notices is a hole in the tests, and the command fails. So is one whose place can no longer be
//! found: a test of this module, which every run of the checks includes, keeps the list true to the code.

mod planted;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use orchestrix_testkit::{Durability, TEST_POSTGRES};

use self::planted::{Edit, Mutant};
use crate::{crates, interrupt, tools};

/// What became of a planted bug.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// These tests failed.
    Caught(Vec<String>),
    /// All tests passed.
    Survived,
}

/// Plants the bugs whose names hold one of the arguments, or all.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let wanted = |mutant: &&Mutant| arguments.is_empty() || arguments.iter().any(|text| mutant.name.contains(text));
    let chosen: Vec<&Mutant> = planted::all().filter(wanted).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = planted::all().map(|mutant| mutant.name).collect();
        bail!("no bug is called {}: there are {}", arguments.join(", "), names.join(", "));
    }
    tools::ensure_nextest()?;
    tools::ensure_pgbouncer()?;
    let server = tools::start_postgres(Durability::Fast)?;
    let copy = Copy::make()?;
    let mut survived = Vec::new();
    println!("==> {} bugs to plant; each takes a build and the tests up to the one that fails", chosen.len());
    for mutant in chosen {
        interrupt::check()?;
        let start = Instant::now();
        println!("\n==> {}: {}", mutant.name, mutant.bug);
        match copy.try_out(mutant, &server.base_url())? {
            Verdict::Caught(tests) => {
                let seconds = start.elapsed().as_secs_f64();
                println!("<== caught in {seconds:.0} s by\n      {}", tests.join("\n      "));
            }
            Verdict::Survived => {
                println!("<== SURVIVED: no test of {} noticed", mutant.packages.join(", "));
                survived.push(mutant.name);
            }
        }
    }
    ensure!(survived.is_empty(), "no test noticed {}", survived.join(", "));
    println!("\nEvery planted bug was caught.");
    Ok(())
}

/// A copy of the tree, so that the one people work in is never broken. Built things are kept beside it for the next time.
struct Copy {
    tree: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn make() -> Result<Self> {
        let home = crates::root().join("target/mutants");
        let copy = Self { tree: home.join("tree"), target: home.join("target") };
        // What git knows or would take up: no build, no databases.
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(crates::root())
            .output()
            .context("cannot list the files of the tree with git")?;
        ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim());
        let listed = String::from_utf8(listed.stdout).context("a file name that is not text")?;
        let mut files: Vec<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
        files.retain(|name| crates::root().join(name).is_file());
        for name in &files {
            copy.bring(Path::new(name))?;
        }
        copy.forget_others(&files)?;
        Ok(copy)
    }

    // Unchanged files are left alone, so that what was built from them stays good.
    fn bring(&self, name: &Path) -> Result<()> {
        let (from, to) = (crates::root().join(name), self.tree.join(name));
        let text = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        if fs::read(&to).is_ok_and(|there| there == text) {
            return Ok(());
        }
        fs::create_dir_all(to.parent().unwrap_or(&self.tree))?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))
    }

    fn forget_others(&self, files: &[&str]) -> Result<()> {
        let mut folders = vec![self.tree.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let name = path.strip_prefix(&self.tree).unwrap_or(&path).to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if !files.contains(&name.as_str()) {
                    fs::remove_file(&path)?;
                }
            }
        }
        Ok(())
    }

    fn try_out(&self, mutant: &Mutant, server: &str) -> Result<Verdict> {
        let planted = mutant.edits.iter().try_for_each(|edit| plant(&self.tree, edit));
        let verdict = planted.and_then(|()| self.test(mutant, server));
        for edit in mutant.edits {
            self.bring(Path::new(edit.file))?;
        }
        verdict
    }

    fn test(&self, mutant: &Mutant, server: &str) -> Result<Verdict> {
        let packages: Vec<&str> = mutant.packages.iter().flat_map(|package| ["-p", package]).collect();
        let cargo = |words: &[&str]| {
            let mut command = Command::new("cargo");
            command
                .args(words)
                .args(&packages)
                .current_dir(&self.tree)
                .env("CARGO_TARGET_DIR", &self.target)
                .env(TEST_POSTGRES, server)
                .stdin(Stdio::null());
            command.output().with_context(|| format!("cannot run cargo {}", words.join(" ")))
        };
        // A bug that does not compile would look like one that was caught.
        let built = cargo(&["nextest", "run", "--no-run", "--all-features"])?;
        ensure!(built.status.success(), "{} does not build:\n{}", mutant.name, String::from_utf8_lossy(&built.stderr));
        let tested = cargo(&["nextest", "run", "--all-features", "--fail-fast", "--no-tests=fail"])?;
        interrupt::check()?;
        if tested.status.success() {
            return Ok(Verdict::Survived);
        }
        let output = String::from_utf8_lossy(&tested.stderr);
        let tests = failures(&output);
        ensure!(!tests.is_empty(), "the tests of {} failed and name no test:\n{output}", mutant.name);
        Ok(Verdict::Caught(tests))
    }
}

/// Plants one change.
fn plant(tree: &Path, edit: &Edit) -> Result<()> {
    let path = tree.join(edit.file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(text.contains(edit.from), "{} does not hold {:?} any more: mend the planted bug", edit.file, edit.from);
    Ok(fs::write(&path, text.replace(edit.from, edit.to))?)
}

/// The tests that nextest says failed, each once.
fn failures(output: &str) -> Vec<String> {
    let failed = |line: &str| {
        let line = line.trim_start();
        let rest = ["FAIL ", "TIMEOUT ", "SIGABRT ", "SIGKILL ", "SIGTERM "]
            .iter()
            .find_map(|word| line.strip_prefix(word))?;
        Some(rest.rsplit_once(']')?.1.trim_start_matches(|c: char| !c.is_alphabetic()).to_owned())
    };
    let mut tests: Vec<String> =
        output.lines().filter_map(failed).map(|name| name.split(") ").last().unwrap_or_default().to_owned()).collect();
    tests.sort_unstable();
    tests.dedup();
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_applies_to_the_code() {
        let mut stale = Vec::new();
        for mutant in planted::all() {
            for edit in mutant.edits {
                assert_ne!(edit.from, edit.to);
                let text = fs::read_to_string(crates::root().join(edit.file)).unwrap_or_default();
                if !text.contains(edit.from) {
                    stale.push(format!("{}: {} does not contain {:?}", mutant.name, edit.file, edit.from));
                }
            }
        }
        assert!(stale.is_empty(), "{}", stale.join("\n"));
    }

    #[test]
    fn failed_tests_are_found_in_what_nextest_prints() {
        let output = "
            PASS [   0.010s] (1/3) orchestrix-sqlite::suite crash::a
            FAIL [   0.169s] (109/206) orchestrix-sqlite::suite conformance::hold::only_a_held_job_can_be_let_go
            FAIL [   0.169s] (109/206) orchestrix-sqlite::suite conformance::hold::only_a_held_job_can_be_let_go
         TIMEOUT [  60.001s] (2/3) orchestrix-core lifecycle::tests::b
        ";
        let expected = [
            "orchestrix-core lifecycle::tests::b",
            "orchestrix-sqlite::suite conformance::hold::only_a_held_job_can_be_let_go",
        ];
        assert_eq!(failures(output), expected);
    }
}
