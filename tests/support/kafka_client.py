"""librdkafka for tests, through ctypes: a producer, committed offsets, and its mock broker, which needs no server."""
import ctypes

PRODUCER, CONSUMER = 0, 1
COPY = 2  # RD_KAFKA_MSG_F_COPY
DEADLINE_MS = 300_000


class Partition(ctypes.Structure):
    """rd_kafka_topic_partition_t"""
    _fields_ = [("topic", ctypes.c_char_p), ("partition", ctypes.c_int32), ("offset", ctypes.c_int64),
                ("metadata", ctypes.c_void_p), ("metadata_size", ctypes.c_size_t), ("opaque", ctypes.c_void_p),
                ("err", ctypes.c_int), ("private", ctypes.c_void_p)]


class PartitionList(ctypes.Structure):
    """rd_kafka_topic_partition_list_t"""
    _fields_ = [("cnt", ctypes.c_int), ("size", ctypes.c_int), ("elems", ctypes.POINTER(Partition))]


def load():
    """The library, or None where it is not installed."""
    try:
        lib = ctypes.CDLL("librdkafka.so.1")
    except OSError:
        return None
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
            ("rd_kafka_conf_new", pointer, []),
            ("rd_kafka_conf_set", ctypes.c_int, [pointer, text, text, text, ctypes.c_size_t]),
            ("rd_kafka_new", pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
            ("rd_kafka_destroy", None, [pointer]),
            ("rd_kafka_flush", ctypes.c_int, [pointer, ctypes.c_int]),
            ("rd_kafka_poll", ctypes.c_int, [pointer, ctypes.c_int]),
            ("rd_kafka_topic_new", pointer, [pointer, text, pointer]),
            ("rd_kafka_topic_destroy", None, [pointer]),
            ("rd_kafka_produce", ctypes.c_int, [pointer, ctypes.c_int32, ctypes.c_int, text, ctypes.c_size_t, text,
                                                ctypes.c_size_t, pointer]),
            ("rd_kafka_topic_partition_list_new", ctypes.POINTER(PartitionList), [ctypes.c_int]),
            ("rd_kafka_topic_partition_list_add", pointer, [ctypes.POINTER(PartitionList), text, ctypes.c_int32]),
            ("rd_kafka_topic_partition_list_destroy", None, [ctypes.POINTER(PartitionList)]),
            ("rd_kafka_committed", ctypes.c_int, [pointer, ctypes.POINTER(PartitionList), ctypes.c_int]),
            ("rd_kafka_mock_cluster_new", pointer, [pointer, ctypes.c_int]),
            ("rd_kafka_mock_cluster_destroy", None, [pointer]),
            ("rd_kafka_mock_cluster_bootstraps", text, [pointer]),
            ("rd_kafka_mock_topic_create", ctypes.c_int, [pointer, text, ctypes.c_int, ctypes.c_int])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


LIB = load()


class Client:
    def __init__(self, kind, properties):
        conf = LIB.rd_kafka_conf_new()
        why = ctypes.create_string_buffer(512)
        for name, value in {"log_level": 0, **properties}.items():
            if LIB.rd_kafka_conf_set(conf, name.encode(), str(value).encode(), why, len(why)) != 0:
                raise ValueError(why.value.decode())
        self.handle = LIB.rd_kafka_new(kind, conf, why, len(why))
        if not self.handle:
            raise RuntimeError(why.value.decode())

    def close(self):
        LIB.rd_kafka_destroy(self.handle)


def produce(brokers, topic, partition, values):
    """Writes messages, in their order, and waits until the broker has them. None: without a value."""
    client = Client(PRODUCER, {"bootstrap.servers": brokers, "linger.ms": 1, "message.timeout.ms": DEADLINE_MS})
    handle = LIB.rd_kafka_topic_new(client.handle, topic.encode(), None)
    for value in values:
        while LIB.rd_kafka_produce(handle, partition, COPY, value, len(value or b""), b"key", 3, None) != 0:
            LIB.rd_kafka_poll(client.handle, 100)  # its queue is full
    failed = LIB.rd_kafka_flush(client.handle, DEADLINE_MS)
    LIB.rd_kafka_topic_destroy(handle)
    client.close()
    if failed:
        raise RuntimeError(f"not all messages were written to {topic}[{partition}]: error {failed}")


def committed(brokers, group, topic, num_partitions):
    """The offsets that a group has committed."""
    client = Client(CONSUMER, {"bootstrap.servers": brokers, "group.id": group})
    parts = LIB.rd_kafka_topic_partition_list_new(num_partitions)
    for partition in range(num_partitions):
        LIB.rd_kafka_topic_partition_list_add(parts, topic.encode(), partition)
    error = LIB.rd_kafka_committed(client.handle, parts, DEADLINE_MS)
    offsets = [parts.contents.elems[i].offset for i in range(num_partitions)]
    LIB.rd_kafka_topic_partition_list_destroy(parts)
    client.close()
    if error:
        raise RuntimeError(f"committed offsets of {group}: error {error}")
    return offsets


class MockBroker:
    """A broker in the threads of this process, which keeps messages in memory."""

    def __init__(self):
        self.client = Client(PRODUCER, {})
        self.cluster = LIB.rd_kafka_mock_cluster_new(self.client.handle, 1)
        self.brokers = LIB.rd_kafka_mock_cluster_bootstraps(self.cluster).decode()

    def create(self, topic, num_partitions):
        if LIB.rd_kafka_mock_topic_create(self.cluster, topic.encode(), num_partitions, 1) != 0:
            raise RuntimeError(f"topic {topic} could not be created")

    def close(self):
        LIB.rd_kafka_mock_cluster_destroy(self.cluster)
        self.client.close()
