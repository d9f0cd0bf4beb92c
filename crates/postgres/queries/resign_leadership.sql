-- Ends the leader's own term. $1 node, $2 epoch.
UPDATE orchestrix.leader_term SET ends_at = now() WHERE node = $1 AND epoch = $2 AND ends_at > now() RETURNING epoch
