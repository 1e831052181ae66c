package org.apache.hudi.aws.transaction.lock;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * Gets and conditional puts for Hudi's StorageBasedLockProvider, by plain HTTP against the test's S3 server.
 *
 * <p>This is PyHudi's, under the name by which Hudi looks for its own (which is in hudi-aws, not in the Spark bundle). It
 * decides nothing but whether a put was refused; what is put, when and why is Hudi's.
 */
public class S3StorageLockClient implements StorageLockClient {
  // The test's server wants to see that a request is signed, and doesn't look at the signature.
  private static final String SIGNED = "AWS4-HMAC-SHA256 Credential=test-access/20260101/us-east-1/s3/aws4_request, "
      + "SignedHeaders=host, Signature=0";
  private static final int OK = 200;
  private static final int NOT_FOUND = 404;
  private static final int PRECONDITION_FAILED = 412;

  private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final String lockFile;

  public S3StorageLockClient(String ownerId, String lockFile, Properties settings) {
    this.lockFile = lockFile;
  }

  @Override
  public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
    HttpResponse<byte[]> answer = send(request(lockFile).GET());
    if (answer.statusCode() == NOT_FOUND) {
      return Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
    }
    if (answer.statusCode() != OK) {
      return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
    }
    ByteArrayInputStream content = new ByteArrayInputStream(answer.body());
    return Pair.of(LockGetResult.SUCCESS, Option.of(StorageLockFile.createFromStream(content, version(answer))));
  }

  @Override
  public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
      StorageLockData wanted, Option<StorageLockFile> before) {
    HttpRequest.Builder put = request(lockFile).PUT(BodyPublishers.ofByteArray(StorageLockFile.toByteArray(wanted)));
    if (before.isPresent()) {
      put.header("If-Match", before.get().getVersionId());
    } else {
      put.header("If-None-Match", "*");
    }
    HttpResponse<byte[]> answer = send(put);
    switch (answer.statusCode()) {
      case OK:
        return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(wanted, version(answer))));
      case PRECONDITION_FAILED:
        return Pair.of(LockUpsertResult.ACQUIRED_BY_OTHERS, Option.empty());
      default:
        return Pair.of(LockUpsertResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  @Override
  public Option<String> readObject(String file, boolean checkExistsFirst) {
    HttpResponse<byte[]> answer = send(request(file).GET());
    boolean isThere = answer.statusCode() == OK;
    return isThere ? Option.of(new String(answer.body(), StandardCharsets.UTF_8)) : Option.empty();
  }

  @Override
  public boolean writeObject(String file, String content) {
    return send(request(file).PUT(BodyPublishers.ofString(content))).statusCode() == OK;
  }

  @Override
  public void close() {}

  private static HttpRequest.Builder request(String file) {
    Pair<String, String> place = StorageLockClient.parseBucketAndPath(file);
    String server = System.getenv("AWS_ENDPOINT_URL_S3");
    return HttpRequest.newBuilder(URI.create(server + "/" + place.getLeft() + "/" + place.getRight()))
        .header("Authorization", SIGNED);
  }

  private HttpResponse<byte[]> send(HttpRequest.Builder request) {
    try {
      return http.send(request.build(), BodyHandlers.ofByteArray());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(error);
    }
  }

  private static String version(HttpResponse<byte[]> answer) {
    return answer.headers().firstValue("ETag").orElseThrow();
  }
}
