-- A search finds a Greek word whichever form of the sigma ends it: what it compares has one form.
UPDATE aliases SET folded = replace(folded, 'ς', 'σ') WHERE folded LIKE '%ς%';
UPDATE property_texts SET folded = replace(folded, 'ς', 'σ') WHERE folded LIKE '%ς%';
