-- The store, version 1 (what came later: store.c). People's SQL uses the views at the end: their names and columns stay.
-- Times are unix seconds (real). A rank of -1 inside a table means "the whole job".

CREATE TABLE job (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'held', 'starting', 'running', 'stopping',
    'stopped', 'done', 'failed', 'cancelled', 'lost')),
  submitted_at REAL NOT NULL,
  started_at REAL,
  ended_at REAL,
  exit_status INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  attempts INTEGER NOT NULL DEFAULT 0,
  ranks INTEGER NOT NULL DEFAULT 0,
  steps INTEGER NOT NULL DEFAULT 0,
  strategy TEXT NOT NULL DEFAULT '',
  text TEXT NOT NULL DEFAULT '',
  plan TEXT,
  -- who may change the state; pid 0: nobody
  lease_host TEXT NOT NULL DEFAULT '',
  lease_boot TEXT NOT NULL DEFAULT '',
  lease_pid INTEGER NOT NULL DEFAULT 0,
  lease_start INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX job_state ON job (state);

CREATE TABLE attempt (
  job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at REAL NOT NULL,
  ended_at REAL,
  state TEXT NOT NULL,
  exit_status INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (job, attempt)
) WITHOUT ROWID;

CREATE TABLE rank (
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  host TEXT NOT NULL DEFAULT '',
  pid INTEGER NOT NULL DEFAULT 0,
  device TEXT NOT NULL DEFAULT '',
  unit TEXT NOT NULL DEFAULT '', -- of its samples
  exit_status INTEGER,
  PRIMARY KEY (job, attempt, rank),
  FOREIGN KEY (job, attempt) REFERENCES attempt (job, attempt) ON DELETE CASCADE
) WITHOUT ROWID;

-- One wide row per rank and optimizer step.
CREATE TABLE sample (
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  time REAL NOT NULL,
  units REAL,
  step_ms REAL,
  comm_ms REAL,
  data_ms REAL,
  loss REAL, -- NULL: not a number
  PRIMARY KEY (job, attempt, rank, step),
  FOREIGN KEY (job, attempt) REFERENCES attempt (job, attempt) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE metric_name (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
-- The columns of sample have roll-ups, too; these ids are known to store/rollup.h.
INSERT INTO metric_name (id, name) VALUES (1, 'units_per_second'), (2, 'step_ms'), (3, 'comm_ms'),
  (4, 'data_ms'), (5, 'loss'), (100, 'lr'); -- others: from 101

CREATE TABLE metric (
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  name INTEGER NOT NULL REFERENCES metric_name (id),
  step INTEGER NOT NULL,
  time REAL NOT NULL,
  value REAL,
  PRIMARY KEY (job, attempt, name, step),
  FOREIGN KEY (job, attempt) REFERENCES attempt (job, attempt) ON DELETE CASCADE
) WITHOUT ROWID;

-- Bucket b of a level of width w holds steps b w + 1 .. (b + 1) w; a chart reads these.
CREATE TABLE rollup (
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  name INTEGER NOT NULL,
  width INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  count INTEGER NOT NULL,
  min REAL NOT NULL,
  max REAL NOT NULL,
  sum REAL NOT NULL,
  PRIMARY KEY (job, attempt, rank, name, width, bucket),
  FOREIGN KEY (job, attempt) REFERENCES attempt (job, attempt) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE memory (
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  category TEXT NOT NULL,
  step INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  peak_bytes INTEGER NOT NULL,
  PRIMARY KEY (job, attempt, rank, category, step),
  FOREIGN KEY (job, attempt) REFERENCES attempt (job, attempt) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  time REAL NOT NULL,
  kind TEXT NOT NULL,
  message TEXT NOT NULL
);
CREATE INDEX event_job ON event (job, id);

CREATE VIEW jobs AS
SELECT id, name, state, submitted_at, started_at, ended_at, exit_status, reason, attempts
FROM job;

CREATE VIEW rank_memory AS
SELECT job, attempt, rank, step, category, bytes, peak_bytes
FROM memory;

CREATE VIEW rank_throughput AS
SELECT s.job, s.attempt, s.rank, s.step, s.time, s.units, coalesce(r.unit, '') AS unit,
  CASE WHEN s.step_ms > 0 THEN s.units * 1000.0 / s.step_ms END AS units_per_second,
  s.step_ms, s.comm_ms, s.data_ms, s.loss
FROM sample s LEFT JOIN rank r ON r.job = s.job AND r.attempt = s.attempt AND r.rank = s.rank;

CREATE VIEW metrics AS
SELECT m.job, m.attempt, m.step, m.time, n.name, m.value
FROM metric m JOIN metric_name n ON n.id = m.name;

CREATE VIEW events AS
SELECT job, attempt, CASE WHEN rank >= 0 THEN rank END AS rank, time, kind, message
FROM event;
