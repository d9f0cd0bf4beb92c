# Cleans up after a server whose owner is gone.
#
# $1 is the server's directory, $2 the signal that makes the server quit at once. Standard input is a pipe that only
# the owner holds open, so that its end is the owner's end, whatever ended it.

trap '' HUP INT
while read -r _; do :; done

# The rename settles a race with a process that is just starting: it records its pid in `running` before it becomes the
# server, so either the record is there to be read below, or the recording fails and nothing starts.
dir=$1
mv "$dir/running" "$dir/ending"

if pid=$(cat "$dir/ending/pid"); then
    kill -s "$2" "$pid"
    tries=0
    # The whole group, because initdb has servers of its own that clean up as long as their files are there.
    while kill -s 0 -- "-$pid" && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -s KILL -- "-$pid"
fi

# A PostgreSQL that was killed leaves its lock file, whose seventh line names a System V memory segment that nobody
# else would ever remove.
if segment=$(sed -n '7s/.* //p' "$dir/data/postmaster.pid") && [ -n "$segment" ]; then
    ipcrm -m "$segment"
fi

rm -rf "$dir" || { sleep 1; rm -rf "$dir"; }
