use super::*;
use crate::check::Status;

fn table(name: &str, dead: u64, vacuum_threshold: f64, autovacuum: bool) -> Table {
    Table { name: name.into(), live: 10, dead, vacuumed: None, autovacuum, vacuum_threshold }
}

fn blocker(kind: BlockerKind, age: Option<u64>) -> VacuumBlocker {
    VacuumBlocker {
        kind,
        pid: (kind != BlockerKind::Prepared).then_some(42),
        name: "report".into(),
        owner: "ada".into(),
        state: "idle in transaction".into(),
        age: age.map(Duration::from_secs),
        transactions: None,
        retained: None,
    }
}

#[test]
fn a_table_with_many_more_dead_rows_than_its_vacuum_threshold_is_a_warning() {
    let one = |dead, vacuum_threshold| tables(&[table("job", dead, vacuum_threshold, true)]).remove(0);
    assert!(one(0, 50.0).detail == "dead rows: none" && one(0, 50.0).status == Status::Ok);
    assert_eq!(one(19_999, 50.0).detail, "dead rows: at most 19999, in job");
    assert_eq!(one(60_000, 20_000.0).status, Status::Ok);
    let late = one(60_001, 20_000.0);
    assert_eq!(late.status, Status::Warning);
    assert!(late.detail.contains("job has 60001 dead and 10 live rows (last vacuum: never)"), "{late:?}");
    let vacuumed = Table { vacuumed: Some(Duration::from_secs(7_200)), ..table("job", 90_000, 1.0, true) };
    assert!(tables(&[vacuumed]).remove(0).detail.contains("last vacuum: 2h ago"));
}

#[test]
fn a_table_without_autovacuum_is_named() {
    let checks = tables(&[table("job", 0, 50.0, false), table("dead", 0, 50.0, true)]);
    assert!(checks[0].status == Status::Warning && checks[0].detail.contains("turned off for job:"), "{checks:?}");
    assert_eq!(checks[0].advice.as_deref(), Some("run ALTER TABLE orchestrix.job RESET (autovacuum_enabled)"));
    assert_eq!(checks[1].status, Status::Ok);
}

#[test]
fn an_old_transaction_is_named_with_its_process_and_age() {
    let of = |blocker: VacuumBlocker| blockers(&[blocker], true).remove(0);
    assert_eq!(blockers(&[], true).remove(0).status, Status::Ok);
    assert_eq!(of(blocker(BlockerKind::Session, Some(1))).status, Status::Ok);
    let open = of(blocker(BlockerKind::Session, Some(2)));
    assert!(open.status == Status::Note && open.advice.unwrap().starts_with("it may end by itself"));
    let old = of(blocker(BlockerKind::Session, Some(61)));
    assert_eq!(old.status, Status::Warning);
    assert!(old.detail.ends_with("report of ada (pid 42, idle in transaction), for 1m"), "{old:?}");
    assert!(old.advice.unwrap().contains("pg_terminate_backend(42)"));
    let without_pid = of(VacuumBlocker { pid: None, ..blocker(BlockerKind::Session, Some(61)) });
    assert!(without_pid.detail.ends_with("report of ada, for 1m"), "{without_pid:?}");
    assert_eq!(without_pid.advice.as_deref(), Some("end it in the program that started it"));
    let prepared = of(blocker(BlockerKind::Prepared, Some(90_000)));
    assert!(prepared.detail.ends_with("prepared transaction \"report\" of ada, for 1d"), "{prepared:?}");
    assert!(prepared.advice.unwrap().contains("ROLLBACK PREPARED 'report'"));
}

#[test]
fn a_role_that_cannot_see_other_sessions_gets_a_note() {
    let check = blockers(&[], false).remove(0);
    assert!(check.status == Status::Note && check.advice.unwrap().contains("pg_read_all_stats"), "{:?}", check.detail);
}

#[test]
fn slots_and_standbys_that_hold_vacuum_back_are_a_warning() {
    let of = |blocker: VacuumBlocker| blockers(&[blocker], true).remove(1);
    let slot = |state: &str, transactions, retained| VacuumBlocker {
        state: state.into(),
        transactions,
        retained,
        ..blocker(BlockerKind::Slot, None)
    };
    assert_eq!(of(slot("inactive", None, Some(1_000))).status, Status::Ok);
    assert_eq!(of(slot("active", Some(5), Some(1_000))).status, Status::Ok);
    let idle = of(slot("inactive", Some(5), None));
    assert!(idle.status == Status::Warning && idle.detail.contains("has no consumer"), "{idle:?}");
    let behind = of(slot("active", Some(2_000_000), None));
    assert!(behind.detail.contains("by 2000000 transactions"), "{behind:?}");
    let full = of(slot("inactive", None, Some(3 << 30)));
    assert!(full.status == Status::Warning && full.detail.contains("3.0 GiB"), "{full:?}");
    assert!(full.advice.unwrap().contains("pg_drop_replication_slot('report')"));
    let standby = |n| VacuumBlocker { transactions: Some(n), ..blocker(BlockerKind::Standby, None) };
    assert_eq!(of(standby(10)).status, Status::Ok);
    assert_eq!((of(standby(1_000_000)).name, of(standby(1_000_000)).status), ("standbys", Status::Warning));
}
