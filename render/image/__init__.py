"""Images: the Bitmap class and the file formats it reads and writes."""
