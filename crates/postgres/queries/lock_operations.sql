-- Keeps others from beginning an operation until the end of this transaction, so that no two count the same ones.
LOCK TABLE orchestrix.operation IN SHARE ROW EXCLUSIVE MODE
