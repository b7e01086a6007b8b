-- A database of version 1, as that program has written it: three trials, one of which runs, and a config that waits.
BEGIN TRANSACTION;
CREATE TABLE meta (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO "meta" VALUES('version','1');
CREATE TABLE queue (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	study INTEGER NOT NULL,
	position BIGINT NOT NULL,
	entry TEXT NOT NULL,
	seal BIGINT NOT NULL,
	FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO "queue" VALUES(2,1,1,'{"config":{"x":0.25,"act":"tanh"},"suggestion":{"by":"you","why":"enqueued"}}',1391734246);
CREATE TABLE receipts (
	"key" TEXT NOT NULL,
	at DOUBLE NOT NULL,
	PRIMARY KEY ("key")
);
CREATE TABLE studies (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	settings TEXT NOT NULL,
	seal BIGINT NOT NULL,
	halted TEXT,
	seconds DOUBLE NOT NULL,
	clock BIGINT NOT NULL,
	created_at DOUBLE NOT NULL,
	made_by TEXT NOT NULL,
	trials INTEGER NOT NULL,
	counted INTEGER NOT NULL,
	running INTEGER NOT NULL,
	spent DOUBLE NOT NULL,
	reserved DOUBLE NOT NULL,
	waiting INTEGER NOT NULL,
	UNIQUE (name)
);
INSERT INTO "studies" VALUES(1,'kept','{"direction":"minimize","seed":3,"initial":8,"unit":"s","per_hour":null,"budget":{"trials":2,"seconds":null,"cost":null,"unit":null,"per_hour":null},"space":{"x":{"kind":"float","low":0,"high":1},"act":{"kind":"choice","options":["relu","tanh"]}},"code":{"method":"Random()","stop":"none","model":"auto","cost_model":"auto","subset":"auto"},"run":{"command":["python","train.py"]}}',1295706798,'"lunch"',1.2559027209994383156e+01,12,1.7947765601819918156e+09,'fdbca968093b497c9f567f5806e79f46',3,3,1,2.0,0.0,1);
CREATE TABLE trials (
	study INTEGER NOT NULL,
	number INTEGER NOT NULL,
	changed BIGINT NOT NULL,
	opened BIGINT NOT NULL,
	abandoned BIGINT,
	closed BIGINT,
	state TEXT NOT NULL,
	value DOUBLE,
	cost DOUBLE,
	expected DOUBLE,
	at_target BOOLEAN NOT NULL,
	worker TEXT,
	token TEXT NOT NULL,
	asked DOUBLE NOT NULL,
	leased_until DOUBLE,
	record TEXT NOT NULL,
	seal BIGINT NOT NULL,
	PRIMARY KEY (study, number),
	FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO "trials" VALUES(1,0,4,2,NULL,4,'done',7.33577983239650302516e-03,1.0,NULL,1,'gone','4cf45ada08294b37b22c4db219981bda',1.79477656020001626012e+09,1.79477662020001626011e+09,'{"number":0,"config":{"x":0.08564916714362436,"act":"relu"},"state":"done","value":0.007335779832396503,"cost":1.0,"seconds":0.007295310002518818,"reports":[{"value":0.08564916714362436,"fidelity":{},"cost":null}],"suggestion":{"by":"Random","why":"random search"},"asked_at":1794776560.1986492,"basis":{"seen":1,"spending":[2,0,0,false]}}',1746718711);
INSERT INTO "trials" VALUES(1,1,7,5,NULL,7,'done',0.0641371214406322,1.0,NULL,1,'gone','c5a59270784f4b60b05585748aa7bcb0',1.79477656022500085828e+09,1.79477662022500085827e+09,'{"number":1,"config":{"x":0.25325307785026463,"act":"relu"},"state":"done","value":0.0641371214406322,"cost":1.0,"seconds":0.011339188000420108,"reports":[{"value":0.25325307785026463,"fidelity":{},"cost":null}],"suggestion":{"by":"Random","why":"random search"},"asked_at":1794776560.2248015,"basis":{"seen":4,"spending":[2,1,1,false]}}',2328842814);
INSERT INTO "trials" VALUES(1,2,11,11,NULL,NULL,'running',NULL,NULL,NULL,1,'gone','a2005883e6c049739d377d6aab65fa79',1.79477656029601240162e+09,NULL,'{"number":2,"config":{"x":0.5,"act":"relu"},"state":"running","suggestion":{"by":"you","why":"enqueued"},"asked_at":1794776560.2951336}',1126960965);
CREATE INDEX ix_receipts_at ON receipts (at);
CREATE INDEX trials_by_change ON trials (study, changed);
CREATE INDEX trials_by_lease ON trials (study, leased_until) WHERE state = 'running';
CREATE INDEX trials_by_value ON trials (study, state, at_target, value, number);
CREATE INDEX queue_by_position ON queue (study, position);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('studies',1);
INSERT INTO "sqlite_sequence" VALUES('queue',2);
COMMIT;
