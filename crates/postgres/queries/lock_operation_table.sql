-- Keeps other transactions from beginning an operation, so that no two count the same running ones.
LOCK TABLE orchestrix.operation IN SHARE ROW EXCLUSIVE MODE
