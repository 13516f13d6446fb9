-- What was last done to a resource is looked up by its name, however many entries there are about others.
CREATE INDEX IF NOT EXISTS audit_of_resource ON audit_log (app_id, resource, id);
