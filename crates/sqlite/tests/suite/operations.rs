//! Operations that this program cannot read.

use orchestrix_core::OperationId;
use orchestrix_sqlite::SqliteStore;
use orchestrix_store::{BulkAction, JobFilter, NewOperation, PageRequest, prelude::*};

use crate::support::{Folder, connect, open};

fn wanted() -> NewOperation {
    let (action, filter, actor) = (BulkAction::Cancel, JobFilter::default(), "ann".into());
    NewOperation { action, filter, dry_run: true, actor, tenant: None }
}

async fn begin(store: &SqliteStore) -> OperationId {
    store.begin_operation(wanted()).await.expect("a valid operation").id
}

#[tokio::test]
async fn an_operation_that_nobody_can_read_is_left_out_and_holds_up_no_other() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let [bad, good, last] = [begin(&store).await, begin(&store).await, begin(&store).await];
    let spoil = "UPDATE operation SET filter = '{\"new\":1}' WHERE id = ?1";
    assert_eq!(connect(&folder.file()).execute(spoil, [bad.as_uuid()]).unwrap(), 1);
    let shown = async |limit| {
        let open = store.open_operations(limit).await.expect("those that can be read");
        open.into_iter().map(|operation| operation.id).collect::<Vec<_>>()
    };
    assert_eq!(shown(1).await, [good], "it was the first in line");
    assert_eq!(shown(100).await, [good, last]);
    let first = store.list_operations(None, &PageRequest::first(2)).await.expect("a page");
    assert_eq!(first.items.iter().map(|operation| operation.id).collect::<Vec<_>>(), [last, good]);
    let rest =
        store.list_operations(None, &PageRequest::after(first.next.expect("there are more"), 2)).await.expect("a page");
    assert_eq!((rest.items, rest.next), (vec![], None));
    // It still counts.
    for _ in 3..NewOperation::MAX_OPEN_EACH {
        begin(&store).await;
    }
    store.begin_operation(wanted()).await.expect_err("there are as many as may be");
}
