-- The name of the plugin that keeps a state, or that has set a timer: another plugin that decides later gets neither. None: nobody
-- knows which, as a server of an earlier version made the row, and whichever plugin decides gets it. Such a server leaves the name
-- when it writes a row anew: no campaign is to have another plugin while servers of both versions run.
ALTER TABLE plugin_states ADD COLUMN plugin TEXT;
ALTER TABLE timers ADD COLUMN plugin TEXT;
