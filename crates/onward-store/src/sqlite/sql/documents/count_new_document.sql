INSERT INTO document_collection (name, documents) VALUES (?, 1)
ON CONFLICT (name) DO UPDATE SET documents = documents + 1 RETURNING id
