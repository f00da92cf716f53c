-- What a site keeps: its machines, and tasks that want to run on them.
CREATE TABLE machines (
    name   text PRIMARY KEY,
    cpu    integer NOT NULL CHECK (cpu >= 0),    -- thousandths of a CPU
    memory bigint  NOT NULL CHECK (memory >= 0)  -- bytes
);

CREATE TABLE tasks (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in the order in which they came
    name    text    NOT NULL UNIQUE,
    cpu     integer NOT NULL CHECK (cpu >= 0),
    memory  bigint  NOT NULL CHECK (memory >= 0),
    machine text REFERENCES machines,
    message text    NOT NULL DEFAULT ''                      -- why it doesn't run yet
);

CREATE INDEX ON tasks (machine);

-- A notification has no room for a whole row: it says which row to read.
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('changes', TG_TABLE_NAME || ' ' || coalesce(NEW.name, OLD.name));
    RETURN NULL;
END
$$;

CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON machines FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON tasks    FOR EACH ROW EXECUTE FUNCTION tell();
