-- lanes, four jobs of a lane at a time
\ir ../lanes/schema.sql
