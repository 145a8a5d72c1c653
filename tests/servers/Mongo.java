import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** A MongoDB server in memory on a port of 127.0.0.1. */
public class Mongo {
    /** Its own name of version 5.0 has a wire version that today's drivers refuse. */
    private static final MongoVersion VERSION =
            new MongoVersion() {
                @Override
                public List<Integer> getVersionArray() {
                    return List.of(5, 0, 0);
                }

                @Override
                public int getWireVersion() {
                    return 13;
                }
            };

    public static void main(String[] args) {
        MongoServer server = new MongoServer(new MemoryBackend().version(VERSION));
        server.bind("127.0.0.1", Integer.parseInt(args[0]));
    }
}
