# Cleans up after a server whose owner is gone.
#
# $1 is the server's directory, $2 the signal for an immediate shutdown. Standard input is a pipe that only the owner
# holds open: it ends when the owner exits, for whatever reason.

trap '' HUP INT
while read -r _; do :; done

# The rename settles a race with a process that is just starting. That process writes its pid to `running` before it
# execs the server: either the pid is there to be read below, or the write fails and nothing starts.
dir=$1
mv "$dir/running" "$dir/ending"

if pid=$(cat "$dir/ending/pid"); then
    kill -s "$2" "$pid"
    tries=0
    # Wait for the whole group, because initdb runs servers that clean up only while their files exist.
    while kill -s 0 -- "-$pid" && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -s KILL -- "-$pid"
fi

# A killed PostgreSQL leaves its lock file. The seventh line names a System V shared memory segment, which must be
# removed, too.
if segment=$(sed -n '7s/.* //p' "$dir/data/postmaster.pid") && [ -n "$segment" ]; then
    ipcrm -m "$segment"
fi

rm -rf "$dir" || { sleep 1; rm -rf "$dir"; }
