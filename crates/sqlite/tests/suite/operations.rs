//! Operations that this program cannot read, because a newer version wrote them.

use orchestrix_core::OperationId;
use orchestrix_sqlite::SqliteStore;
use orchestrix_store::{BulkAction, JobFilter, NewOperation, PageRequest, prelude::*};

use crate::support::{Folder, connect, open};

fn new_operation() -> NewOperation {
    let (action, filter, actor) = (BulkAction::Cancel, JobFilter::default(), "ann".into());
    NewOperation { action, filter, dry_run: true, actor, tenant: None }
}

async fn begin(store: &SqliteStore) -> OperationId {
    store.begin_operation(new_operation()).await.expect("a valid operation").id
}

#[tokio::test]
async fn an_unreadable_operation_is_omitted_and_does_not_block_others() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let [bad, good, last] = [begin(&store).await, begin(&store).await, begin(&store).await];
    let corrupt = "UPDATE operation SET filter = '{\"new\":1}' WHERE id = ?1";
    assert_eq!(connect(&folder.file()).execute(corrupt, [bad.as_uuid()]).unwrap(), 1);
    let open_ids = async |limit| {
        let open = store.open_operations(limit).await.expect("the readable operations");
        open.into_iter().map(|operation| operation.id).collect::<Vec<_>>()
    };
    assert_eq!(open_ids(1).await, [good], "the unreadable one would be first");
    assert_eq!(open_ids(100).await, [good, last]);
    let first = store.list_operations(None, &PageRequest::first(2)).await.expect("a page");
    assert_eq!(first.items.iter().map(|operation| operation.id).collect::<Vec<_>>(), [last, good]);
    let rest =
        store.list_operations(None, &PageRequest::after(first.next.expect("there are more"), 2)).await.expect("a page");
    assert_eq!((rest.items, rest.next), (vec![], None));
    // It still counts towards the limit.
    for _ in 3..NewOperation::MAX_OPEN_EACH {
        begin(&store).await;
    }
    store.begin_operation(new_operation()).await.expect_err("the limit is reached");
}
