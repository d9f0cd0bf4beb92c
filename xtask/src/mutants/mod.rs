//! `cargo xtask mutants`: applies known bugs to a copy of the tree, one at a time, and runs the tests.
//!
//! The command fails if no test fails: the tests have a gap. A test of this module, part of every full run, checks
//! that every patch still applies to the code.

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

/// The result of testing one mutant.
#[derive(Debug, PartialEq, Eq)]
enum MutantResult {
    /// These tests failed.
    Caught(Vec<String>),
    /// All tests passed.
    Survived,
}

/// Tests the mutants whose names contain one of the arguments, or all.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let selected = |mutant: &&Mutant| arguments.is_empty() || arguments.iter().any(|text| mutant.name.contains(text));
    let chosen: Vec<&Mutant> = planted::all().filter(selected).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = planted::all().map(|mutant| mutant.name).collect();
        bail!("no mutant has a name with {}: the names are {}", arguments.join(", "), names.join(", "));
    }
    tools::ensure_nextest()?;
    tools::ensure_pgbouncer()?;
    let server = tools::start_postgres(Durability::Fast)?;
    let copy = TreeCopy::create()?;
    let mut survived = Vec::new();
    println!("==> {} mutants; each takes a build, and the tests until one fails", chosen.len());
    for mutant in chosen {
        interrupt::check()?;
        let start = Instant::now();
        println!("\n==> {}: {}", mutant.name, mutant.bug);
        match copy.test_mutant(mutant, &server.base_url())? {
            MutantResult::Caught(tests) => {
                let seconds = start.elapsed().as_secs_f64();
                println!("<== caught in {seconds:.0} s by\n      {}", tests.join("\n      "));
            }
            MutantResult::Survived => {
                println!("<== SURVIVED: no test of {} failed", mutant.packages.join(", "));
                survived.push(mutant.name);
            }
        }
    }
    ensure!(survived.is_empty(), "no test failed for {}", survived.join(", "));
    println!("\nEvery mutant was caught.");
    Ok(())
}

/// A copy of the tree, so that the working tree is never modified. Its build artifacts are kept for the next run.
struct TreeCopy {
    tree: PathBuf,
    target: PathBuf,
}

impl TreeCopy {
    fn create() -> Result<Self> {
        let home = crates::root().join("target/mutants");
        let copy = Self { tree: home.join("tree"), target: home.join("target") };
        // Tracked and untracked files that git does not ignore.
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(crates::root())
            .output()
            .context("cannot list the files of the tree with git")?;
        ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim());
        let listed = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
        let mut files: Vec<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
        files.retain(|name| crates::root().join(name).is_file());
        for name in &files {
            copy.copy_file(Path::new(name))?;
        }
        copy.remove_other_files(&files)?;
        Ok(copy)
    }

    // Unchanged files are not written, so that their build artifacts stay valid.
    fn copy_file(&self, name: &Path) -> Result<()> {
        let (from, to) = (crates::root().join(name), self.tree.join(name));
        let text = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        if fs::read(&to).is_ok_and(|existing| existing == text) {
            return Ok(());
        }
        fs::create_dir_all(to.parent().unwrap_or(&self.tree))?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))
    }

    fn remove_other_files(&self, files: &[&str]) -> Result<()> {
        let mut directories = vec![self.tree.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory)? {
                let path = entry?.path();
                let name = path.strip_prefix(&self.tree).unwrap_or(&path).to_string_lossy().into_owned();
                if path.is_dir() {
                    directories.push(path);
                } else if !files.contains(&name.as_str()) {
                    fs::remove_file(&path)?;
                }
            }
        }
        Ok(())
    }

    fn test_mutant(&self, mutant: &Mutant, server: &str) -> Result<MutantResult> {
        let applied = mutant.edits.iter().try_for_each(|edit| apply(&self.tree, edit));
        let result = applied.and_then(|()| self.run_tests(mutant, server));
        for edit in mutant.edits {
            self.copy_file(Path::new(edit.file))?;
        }
        result
    }

    fn run_tests(&self, mutant: &Mutant, server: &str) -> Result<MutantResult> {
        let packages: Vec<&str> = mutant.packages.iter().flat_map(|package| ["-p", package]).collect();
        let cargo = |arguments: &[&str]| {
            let mut command = Command::new("cargo");
            command
                .args(arguments)
                .args(&packages)
                .current_dir(&self.tree)
                .env("CARGO_TARGET_DIR", &self.target)
                .env(TEST_POSTGRES, server)
                .stdin(Stdio::null());
            command.output().with_context(|| format!("cannot run cargo {}", arguments.join(" ")))
        };
        // A mutant that does not compile would look like one that was caught.
        let built = cargo(&["nextest", "run", "--no-run", "--all-features"])?;
        ensure!(built.status.success(), "{} does not build:\n{}", mutant.name, String::from_utf8_lossy(&built.stderr));
        let tested = cargo(&["nextest", "run", "--all-features", "--fail-fast", "--no-tests=fail"])?;
        interrupt::check()?;
        if tested.status.success() {
            return Ok(MutantResult::Survived);
        }
        let output = String::from_utf8_lossy(&tested.stderr);
        let tests = failures(&output);
        ensure!(!tests.is_empty(), "the tests of {} failed, but the output names no test:\n{output}", mutant.name);
        Ok(MutantResult::Caught(tests))
    }
}

/// Applies one edit.
fn apply(tree: &Path, edit: &Edit) -> Result<()> {
    let path = tree.join(edit.file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(text.contains(edit.from), "{} no longer contains {:?}: update the mutant", edit.file, edit.from);
    Ok(fs::write(&path, text.replace(edit.from, edit.to))?)
}

/// The failed tests in nextest's output, sorted and without duplicates.
fn failures(output: &str) -> Vec<String> {
    let failed = |line: &str| {
        let line = line.trim_start();
        let rest = ["FAIL ", "TIMEOUT ", "SIGABRT ", "SIGKILL ", "SIGTERM "]
            .iter()
            .find_map(|status| line.strip_prefix(status))?;
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
    fn failed_tests_are_parsed_from_the_output_of_nextest() {
        let output = "
            PASS [   0.010s] (1/3) orchestrix-sqlite::suite crash::a
            FAIL [   0.169s] (109/206) orchestrix-sqlite::suite conformance::held_jobs::only_a_held_job_can_be_released
            FAIL [   0.169s] (109/206) orchestrix-sqlite::suite conformance::held_jobs::only_a_held_job_can_be_released
         TIMEOUT [  60.001s] (2/3) orchestrix-core lifecycle::tests::b
        ";
        let expected = [
            "orchestrix-core lifecycle::tests::b",
            "orchestrix-sqlite::suite conformance::held_jobs::only_a_held_job_can_be_released",
        ];
        assert_eq!(failures(output), expected);
    }
}
