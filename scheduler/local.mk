# The queue comes with its own issue; nothing of it is built yet.
